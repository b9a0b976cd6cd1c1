// The tracker of an exported model along its reference, without ROS: positions and velocities of
// joints in, efforts out. No function except `problem` allocates memory.
#ifndef NH_CONTROL_TRACKER_CORE_HPP
#define NH_CONTROL_TRACKER_CORE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tracker_settings.hpp"

namespace nh_control
{

enum class Result {
    ok,
    no_position,  // a position is not finite
    no_velocity,  // a velocity is not finite, and no filter estimates it
    far_position, // a position is too far from the reference
    far_velocity, // a velocity is too far from that of the reference
    model_failed, // the model cannot follow the measurements
    no_command,   // the law has no finite value
    ended,        // the reference ended, and `at_end` is error
};

// Steps since the reset: those with a command, those that the calls skipped, and the largest
// distance of a tracked joint from the reference.
struct Report {
    long steps = 0, missed = 0;
    double farthest = 0.0;
    int farthest_joint = 0;
};

// Answers measurements with efforts. At the time t after the start, gains and inputs are those of
// the closest step k of the reference, which is interpolated between k and its neighbor; the state
// with the same error at step k is tracked. Before the start the reference rests at step 0.
template <class Model> class TrackerCore
{
  public:
    using Joints = std::array<double, Model::joints.size()>;
    using Efforts = std::array<double, Model::efforts.size()>;

    explicit TrackerCore(const Settings &settings) : s_(settings)
    {
        std::copy(settings.scale.begin(), settings.scale.end(), scale_.begin());
        reset();
    }

    // Forgets all measurements, commands and the start.
    void reset()
    {
        report_ = {};
        memory_.fill(0.0), u_.fill(0.0);
        filtering_ = started_ = false;
        last_ns_ = last_step_ = -1;
    }

    void start(std::int64_t time_ns) { start_ns_ = time_ns, started_ = true; }

    bool started() const { return started_; }

    const Report &report() const { return report_; }

    // Whether joints measured at a time are near the reference, whose start may come later.
    Result check_start(std::int64_t time_ns, const Joints &positions, const Joints &velocities)
    {
        const Result result = read(positions, velocities);
        if (result != Result::ok) return result;
        std::array<double, n_w> v;
        find_target(time_ns);
        if (is_far(q_, target_.data(), s_.start_position)) return Result::far_position;
        if (Model::velocity(target_.data(), v.data()) != 0) return Result::model_failed;
        return is_far(v_, v.data(), s_.start_velocity) ? Result::far_velocity : Result::ok;
    }

    // Efforts for joints measured at a time, which increases from call to call. They change only
    // if the result is ok.
    Result update(std::int64_t time_ns, const Joints &positions, const Joints &velocities,
                  Efforts &efforts)
    {
        Result result = read(positions, velocities);
        if (result != Result::ok) return result;
        const long k = find_target(time_ns);
        if (is_far(q_, target_.data(), s_.abort_position)) return Result::far_position;
        result = estimate(time_ns);
        if (result != Result::ok) return result;
        result = command(k);
        if (result != Result::ok) return result;
        last_ns_ = time_ns;
        if (started_) count(k);
        for (std::size_t i = 0; i < efforts.size(); ++i)
            efforts[i] = scale_[i] * (u_[Model::efforts[i].input] / Model::efforts[i].gain);
        return Result::ok;
    }

    // What the last result that was not ok means, and the remedy.
    std::string problem(Result result) const
    {
        const Joint &joint = Model::joints[at_];
        const std::string name = "joint '" + s_.joints[at_] + "'";
        const std::string unit = joint.unit;
        switch (result) {
        case Result::ok: return "";
        case Result::no_position:
            return "the position of " + name + " is not a number: the hardware does not report it";
        case Result::no_velocity:
            return "the velocity of " + name +
                   " is not a number: the hardware does not report it; with filter.noise > 0 it "
                   "is estimated";
        case Result::far_position:
            return name + " is at " + text(value_) + " " + unit + ", the reference at " +
                   text(expected_) + " " + unit + ", more than " + text(bound_) +
                   " away: move it there, or change the tolerance";
        case Result::far_velocity:
            return name + " moves by " + text(value_) + " " + unit + "/s, the reference by " +
                   text(expected_) + " " + unit + "/s, more than " + text(bound_) +
                   " from it: bring it to rest, or change start_tolerance.velocity";
        case Result::model_failed: return "the model cannot follow the measurements";
        case Result::no_command: return "the state is too far from the reference for a command";
        case Result::ended: return "the reference has ended (at_end: error)";
        }
        return "unknown";
    }

  private:
    static constexpr int n_x = Model::nx, n_dx = Model::ndx, n_w = Model::nw, n_e = Model::ne;
    using State = std::array<double, n_x>;
    using Tangent = std::array<double, n_dx>;
    using Square = std::array<double, n_dx * n_dx>;

    static std::string text(double value)
    {
        char out[32];
        std::snprintf(out, sizeof out, "%.4g", value);
        return out;
    }

    // The configuration and velocity of the model.
    Result read(const Joints &positions, const Joints &velocities)
    {
        for (std::size_t i = 0; i < positions.size(); ++i) {
            at_ = i;
            q_[i] = Model::joints[i].sign * positions[i];
            v_[i] = Model::joints[i].sign * velocities[i];
            if (!std::isfinite(q_[i])) return Result::no_position;
            if (!std::isfinite(v_[i]) && !(s_.filter_noise > 0)) return Result::no_velocity;
        }
        return Result::ok;
    }

    // Whether a tracked joint is farther from the expected value than the bound, 0 for none.
    template <class Values> bool is_far(const Values &values, const double *expected, double bound)
    {
        if (!(bound > 0)) return false;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (!Model::joints[i].tracked || !(std::abs(values[i] - expected[i]) > bound))
                continue;
            const double sign = Model::joints[i].sign;
            at_ = i, bound_ = bound, value_ = sign * values[i], expected_ = sign * expected[i];
            return true;
        }
        return false;
    }

    // The closest step k to a time, its state node_ = x_d[k] of the reference, and target_,
    // x_d(t) = retract(x_d[k], a local(x_d[k], x_d[k'])).
    long find_target(std::int64_t time_ns)
    {
        const double time_s =
            started_ ? std::max(0.0, static_cast<double>(time_ns - start_ns_) / 1e9) : 0.0;
        const long k = static_cast<long>(std::nearbyint(time_s / Model::step_s));
        const double after = time_s / Model::step_s - static_cast<double>(k);
        Model::target(k, node_.data());
        target_ = node_;
        if (after == 0.0) return k;
        const int side = after < 0 && k > 0 ? -1 : 1;
        State neighbor;
        Tangent dx;
        Model::target(k + side, neighbor.data());
        Model::local(node_.data(), neighbor.data(), dx.data());
        for (double &number : dx) number *= side * after;
        Model::retract(node_.data(), dx.data(), target_.data());
        return k;
    }

    // The state x_: measured, or that of the filter.
    Result estimate(std::int64_t time_ns)
    {
        if (!(s_.filter_noise > 0)) return make_state(q_.data(), v_.data(), x_);
        const double elapsed = static_cast<double>(time_ns - last_ns_) / 1e9 / Model::step_s;
        if (!filtering_ || elapsed > most_predicted) return begin_filter();
        State x = x_;
        Square P = P_;
        for (long n = std::lround(elapsed); n > 0; --n)
            if (Model::predict(x.data(), P.data(), u_.data(), W_.data()) != 0)
                return lose_filter();
        if (Model::update(x.data(), P.data(), q_.data(), V_.data()) != 0) return lose_filter();
        x_ = x, P_ = P;
        return Result::ok;
    }

    static Result make_state(const double *q, const double *v, State &x)
    {
        return Model::state(q, v, x.data()) == 0 ? Result::ok : Result::model_failed;
    }

    Result lose_filter()
    {
        filtering_ = false;
        return Result::model_failed;
    }

    // The filter begins at the measurement. Velocities that are not measured are the target's:
    // W = (acceleration h)^2 G G^T with G the momenta of unit velocities.
    Result begin_filter()
    {
        std::array<double, n_w> v, expected;
        std::array<double, n_w> known, unit;
        std::array<double, n_dx * n_w> G;
        if (Model::velocity(target_.data(), expected.data()) != 0) return Result::model_failed;
        const double change = std::pow(s_.filter_acceleration * Model::step_s, 2);
        for (int j = 0; j < n_w; ++j) {
            known[j] = std::isfinite(v_[j]) ? change : 1.0;
            v[j] = std::isfinite(v_[j]) ? v_[j] : expected[j];
        }
        if (make_state(q_.data(), v.data(), x_) != Result::ok) return Result::model_failed;
        for (int j = 0; j < n_w; ++j) {
            State moved;
            Tangent dx;
            unit = v, unit[j] += 1.0;
            if (make_state(q_.data(), unit.data(), moved) != Result::ok)
                return Result::model_failed;
            Model::local(x_.data(), moved.data(), dx.data());
            for (int i = 0; i < n_dx; ++i) G[n_w * i + j] = dx[i];
        }
        V_.fill(0.0);
        for (int i = 0; i < n_e; ++i) V_[n_e * i + i] = std::pow(s_.filter_noise, 2);
        for (int i = 0; i < n_dx; ++i)
            for (int j = 0; j < n_dx; ++j) {
                double w = 0.0, p = 0.0;
                for (int l = 0; l < n_w; ++l) {
                    w += change * G[n_w * i + l] * G[n_w * j + l];
                    p += G[n_w * i + l] * known[l] * G[n_w * j + l];
                }
                W_[n_dx * i + j] = w;
                P_[n_dx * i + j] = p + (i < n_e && j < n_e ? V_[n_e * i + j] : 0.0);
            }
        filtering_ = true;
        return Result::ok;
    }

    // The inputs u_ at step k.
    Result command(long k)
    {
        std::array<double, Model::nu> u{};
        const bool ended = started_ && k >= Model::steps;
        if (ended && s_.at_end == AtEnd::error) return Result::ended;
        const bool is_idle = (!started_ && s_.before_start == BeforeStart::zero) ||
                             (ended && s_.at_end == AtEnd::zero);
        auto memory = memory_;
        if (k != last_step_ + 1) memory[0] = 0.0; // nothing was predicted for this step
        if (!is_idle) {
            Tangent error;
            State x;
            Model::local(target_.data(), x_.data(), error.data());
            Model::retract(node_.data(), error.data(), x.data());
            Model::track(k, x.data(), memory.data(), u.data());
        }
        for (double value : u)
            if (!std::isfinite(value)) return Result::no_command;
        if (!started_ || is_idle) memory.fill(0.0);
        u_ = u, memory_ = memory;
        return Result::ok;
    }

    void count(long k)
    {
        ++report_.steps;
        if (last_step_ >= 0 && k > last_step_ + 1) report_.missed += k - last_step_ - 1;
        last_step_ = k;
        for (std::size_t i = 0; i < q_.size(); ++i) {
            const double away = std::abs(q_[i] - target_[i]);
            if (!Model::joints[i].tracked || !(away > report_.farthest)) continue;
            report_.farthest = away, report_.farthest_joint = static_cast<int>(i);
        }
    }

    static constexpr double most_predicted = 100.0; // steps; after a longer gap a filter begins

    Settings s_;
    Efforts scale_{};
    Joints q_{}, v_{};
    State x_{}, node_{}, target_{};
    Square P_{}, W_{};
    std::array<double, n_e * n_e> V_{};
    std::array<double, Model::nu> u_{};
    std::array<double, Model::memory> memory_{};
    Report report_;
    bool filtering_ = false, started_ = false;
    std::int64_t start_ns_ = 0, last_ns_ = -1;
    long last_step_ = -1;
    std::size_t at_ = 0; // the joint of the last problem
    double value_ = 0.0, expected_ = 0.0, bound_ = 0.0;
};

} // namespace nh_control
#endif
