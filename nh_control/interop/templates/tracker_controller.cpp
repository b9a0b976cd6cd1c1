// The tracker as a controller of ros2_control: it claims the efforts of joints, and their
// positions and velocities. `update` neither allocates nor waits.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "builtin_interfaces/msg/time.hpp"
#include "controller_interface/controller_interface.hpp"
#include "model.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/rclcpp.hpp"
#include "tracker_core.hpp"

namespace @package@
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::return_type;
using nh_control::Result;

class TrackerController : public controller_interface::ControllerInterface
{
  public:
    CallbackReturn on_init() override
    {
        return read_parameters() ? CallbackReturn::SUCCESS : CallbackReturn::ERROR;
    }

    InterfaceConfiguration command_interface_configuration() const override
    {
        InterfaceConfiguration claimed{individual, {}};
        for (const auto &effort : Model::efforts)
            claimed.names.push_back(command_prefix_ + settings_.joints[effort.joint] + "/" +
                                    command_interface_);
        return claimed;
    }

    // Positions of all joints, then their velocities.
    InterfaceConfiguration state_interface_configuration() const override
    {
        InterfaceConfiguration claimed{individual, {}};
        for (const char *interface : {"/position", "/velocity"})
            for (const auto &joint : settings_.joints)
                claimed.names.push_back(state_prefix_ + joint + interface);
        return claimed;
    }

    CallbackReturn on_configure(const rclcpp_lifecycle::State &) override
    {
        if (!read_parameters()) return CallbackReturn::ERROR;
        const double steps = get_update_rate() * Model::step_s;
        if (!(std::abs(steps - 1.0) <= 0.01)) {
            RCLCPP_ERROR(get_node()->get_logger(),
                         "it runs at %u Hz, but its gains are for steps of %g s: set its "
                         "update_rate to %ld, at most that of the controller manager, or export "
                         "it with --step %g",
                         get_update_rate(), Model::step_s, std::lround(1.0 / Model::step_s),
                         1.0 / std::max(1u, get_update_rate()));
            return CallbackReturn::ERROR;
        }
        start_.reset();
        if (settings_.starts_by_message)
            start_ = get_node()->create_subscription<builtin_interfaces::msg::Time>(
                "~/reference_start", rclcpp::QoS(1).transient_local(),
                [this](const builtin_interfaces::msg::Time &time) {
                    start_ns_ = rclcpp::Time(time).nanoseconds();
                });
        core_.emplace(settings_);
        return CallbackReturn::SUCCESS;
    }

    CallbackReturn on_activate(const rclcpp_lifecycle::State &) override
    {
        core_->reset();
        start_ns_ = unknown, unwritten_ = 0, last_ = Result::ok;
        const Result result =
            read_states() ? core_->check_start(0, positions_, velocities_) : Result::no_position;
        if (result == Result::ok) return CallbackReturn::SUCCESS;
        RCLCPP_ERROR(get_node()->get_logger(), "the reference cannot start: %s",
                     core_->problem(result).c_str());
        return CallbackReturn::FAILURE;
    }

    CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override
    {
        efforts_.fill(0.0);
        write_efforts();
        const auto &report = core_->report();
        if (last_ != Result::ok)
            RCLCPP_ERROR(get_node()->get_logger(), "stopped: %s", core_->problem(last_).c_str());
        const std::string &joint = settings_.joints[report.farthest_joint];
        RCLCPP_INFO(get_node()->get_logger(),
                    "%ld steps, %ld missed, %ld efforts not taken; joint '%s' was %.3g off at "
                    "most",
                    report.steps, report.missed, unwritten_, joint.c_str(), report.farthest);
        return CallbackReturn::SUCCESS;
    }

    return_type update(const rclcpp::Time &time, const rclcpp::Duration &) override
    {
        if (!core_->started()) {
            const std::int64_t start_ns =
                settings_.starts_by_message ? start_ns_.load() : time.nanoseconds();
            if (start_ns != unknown) core_->start(start_ns);
        }
        const std::int64_t now_ns = time.nanoseconds();
        last_ = read_states() ? core_->update(now_ns, positions_, velocities_, efforts_)
                              : Result::no_position;
        if (last_ != Result::ok) return return_type::ERROR;
        write_efforts();
        return return_type::OK;
    }

  private:
    using Core = nh_control::TrackerCore<Model>;
    static constexpr auto individual =
        controller_interface::interface_configuration_type::INDIVIDUAL;
    static constexpr std::int64_t unknown = std::numeric_limits<std::int64_t>::min();

    bool read_parameters()
    {
        const auto declare = [this](const char *name, const auto &value) {
            return auto_declare<std::decay_t<decltype(value)>>(name, value);
        };
        try {
            settings_ = nh_control::read_settings<Model>(declare);
            command_interface_ = declare("command_interface", std::string("effort"));
            command_prefix_ = prefix(declare("command_prefix", std::string()));
            state_prefix_ = prefix(declare("state_prefix", std::string()));
        } catch (const std::invalid_argument &reason) {
            RCLCPP_ERROR(get_node()->get_logger(), "parameter %s", reason.what());
            return false;
        }
        return true;
    }

    static std::string prefix(const std::string &name)
    {
        return name.empty() || name.back() == '/' ? name : name + "/";
    }

    // False while another thread holds an interface, which is only for a short time.
    bool read_states()
    {
        constexpr std::size_t n = Model::joints.size();
        for (std::size_t i = 0; i < n; ++i) {
            const auto position = state_interfaces_[i].get_optional();
            const auto velocity = state_interfaces_[n + i].get_optional();
            if (!position || !velocity) return false;
            positions_[i] = *position, velocities_[i] = *velocity;
        }
        return true;
    }

    void write_efforts()
    {
        for (std::size_t i = 0; i < efforts_.size(); ++i)
            if (!command_interfaces_[i].set_value(efforts_[i])) ++unwritten_;
    }

    nh_control::Settings settings_;
    std::string command_interface_, command_prefix_, state_prefix_;
    std::optional<Core> core_;
    Core::Joints positions_{}, velocities_{};
    Core::Efforts efforts_{};
    rclcpp::Subscription<builtin_interfaces::msg::Time>::SharedPtr start_;
    std::atomic<std::int64_t> start_ns_{unknown};
    long unwritten_ = 0;
    Result last_ = Result::ok;
};

} // namespace @package@

PLUGINLIB_EXPORT_CLASS(@package@::TrackerController, controller_interface::ControllerInterface)
