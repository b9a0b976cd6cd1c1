// The tracker as a node: it answers every joint_states with joint_commands of the same stamp.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "builtin_interfaces/msg/time.hpp"
#include "model.hpp"
#include "rclcpp/rclcpp.hpp"
#include "sensor_msgs/msg/joint_state.hpp"
#include "tracker_core.hpp"

namespace @package@
{

using nh_control::Result;
using sensor_msgs::msg::JointState;

class TrackerNode : public rclcpp::Node
{
  public:
    TrackerNode()
        : Node("@package@"), settings_(nh_control::read_settings<Model>(
                                 [this](const char *name, const auto &value) {
                                     using Value = std::decay_t<decltype(value)>;
                                     return declare_parameter<Value>(name, value);
                                 })),
          core_(settings_)
    {
        for (const auto &effort : Model::efforts)
            command_.name.push_back(settings_.joints[effort.joint]);
        command_.effort.resize(Model::efforts.size());
        rclcpp::PublisherOptions published;
        rclcpp::SubscriptionOptions subscribed;
        published.qos_overriding_options = rclcpp::QosOverridingOptions::with_default_policies();
        subscribed.qos_overriding_options = published.qos_overriding_options;
        commands_ = create_publisher<JointState>("joint_commands", rclcpp::QoS(depth), published);
        if (settings_.starts_by_message)
            start_ = create_subscription<builtin_interfaces::msg::Time>(
                "reference_start", rclcpp::QoS(1).transient_local(),
                [this](const builtin_interfaces::msg::Time &time) {
                    reference_start_ = rclcpp::Time(time).nanoseconds();
                    core_.start(*reference_start_);
                });
        states_ = create_subscription<JointState>(
            "joint_states", rclcpp::QoS(depth),
            [this](const JointState &message) {
                answer(message);
                if (failed_) rclcpp::shutdown();
            },
            subscribed);
    }

    // Whether it ended with an error.
    bool failed() const { return failed_; }

    // Sends no effort, so that no joint keeps the last one.
    void release()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!active_) return;
        active_ = false;
        command_.effort.assign(command_.effort.size(), 0.0);
        commands_->publish(command_);
        const auto &report = core_.report();
        RCLCPP_INFO(get_logger(), "%ld steps, %ld missed; joint '%s' was %.3g off at most",
                    report.steps, report.missed,
                    settings_.joints[report.farthest_joint].c_str(), report.farthest);
    }

  private:
    using Core = nh_control::TrackerCore<Model>;
    static constexpr std::size_t depth = 10;

    void answer(const JointState &message)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const std::int64_t stamp_ns = rclcpp::Time(message.header.stamp).nanoseconds();
        if (active_ && stamp_ns == stamp_ns_) { // the plant waits for the answer
            commands_->publish(command_);
            return;
        }
        if (active_ && stamp_ns < stamp_ns_) {
            RCLCPP_INFO(get_logger(), "the states start again: so does the reference");
            active_ = false;
        }
        if (!read(message)) return;
        if (!active_ && !activate(stamp_ns)) return;
        const Result result = core_.update(stamp_ns, positions_, velocities_, efforts_);
        if (result == Result::far_position || result == Result::ended) {
            RCLCPP_ERROR(get_logger(), "stopped: %s", core_.problem(result).c_str());
            failed_ = true;
        } else if (result != Result::ok) {
            warn(result);
        } else {
            stamp_ns_ = stamp_ns;
            command_.header.stamp = message.header.stamp;
            command_.effort.assign(efforts_.begin(), efforts_.end());
            commands_->publish(command_);
        }
    }

    // The joints of a message, in any order, with velocities or without; false if one is missing.
    bool read(const JointState &message)
    {
        const auto &names = message.name;
        const bool moves = message.velocity.size() == names.size();
        for (std::size_t i = 0; i < positions_.size(); ++i) {
            const std::string &joint = settings_.joints[i];
            std::size_t &place = places_[i]; // its index in the last message
            if (place >= names.size() || names[place] != joint)
                for (place = 0; place < names.size() && names[place] != joint;) ++place;
            if (place >= message.position.size()) {
                RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), 1000,
                                     "joint_states without the joint '%s'", joint.c_str());
                return false;
            }
            positions_[i] = message.position[place];
            velocities_[i] =
                moves ? message.velocity[place] : std::numeric_limits<double>::quiet_NaN();
        }
        return true;
    }

    bool activate(std::int64_t stamp_ns)
    {
        core_.reset();
        if (!settings_.starts_by_message) reference_start_ = stamp_ns;
        if (reference_start_) core_.start(*reference_start_);
        const Result result = core_.check_start(stamp_ns, positions_, velocities_);
        if (result != Result::ok) warn(result);
        active_ = result == Result::ok;
        return active_;
    }

    void warn(Result result)
    {
        RCLCPP_WARN_THROTTLE(get_logger(), *get_clock(), 1000, "%s: %s",
                             active_ ? "no command" : "the reference cannot start",
                             core_.problem(result).c_str());
    }

    nh_control::Settings settings_;
    Core core_;
    Core::Joints positions_{}, velocities_{};
    Core::Efforts efforts_{};
    std::array<std::size_t, Model::joints.size()> places_{};
    std::mutex mutex_; // a signal releases in another thread
    bool active_ = false, failed_ = false;
    std::optional<std::int64_t> reference_start_;
    std::int64_t stamp_ns_ = -1;
    JointState command_;
    rclcpp::Publisher<JointState>::SharedPtr commands_;
    rclcpp::Subscription<JointState>::SharedPtr states_;
    rclcpp::Subscription<builtin_interfaces::msg::Time>::SharedPtr start_;
};

} // namespace @package@

int main(int argc, char **argv)
{
    rclcpp::init(argc, argv);
    try {
        const auto node = std::make_shared<@package@::TrackerNode>();
        const auto context = node->get_node_base_interface()->get_context();
        context->add_pre_shutdown_callback([&node] { node->release(); });
        rclcpp::spin(node);
        return node->failed() ? EXIT_FAILURE : EXIT_SUCCESS;
    } catch (const std::invalid_argument &reason) {
        RCLCPP_ERROR(rclcpp::get_logger("@package@"), "parameter %s", reason.what());
        return EXIT_FAILURE;
    }
}
