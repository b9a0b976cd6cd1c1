// The settings of an exported tracker: their names, defaults and bounds.
#ifndef NH_CONTROL_TRACKER_SETTINGS_HPP
#define NH_CONTROL_TRACKER_SETTINGS_HPP

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace nh_control
{

// A joint that shows `sign` times a coordinate of the model.
struct Joint {
    const char *name;
    double sign;
    bool tracked; // whether the gains weigh it
    const char *unit;
};

// The effort of a joint (by its index), whose input of the model is `gain` times it.
struct Effort {
    int joint;
    int input;
    double gain;
};

enum class BeforeStart { hold, zero };
enum class AtEnd { hold, zero, error };

struct Settings {
    std::vector<std::string> joints;
    std::vector<double> scale;
    bool starts_by_message = false;
    BeforeStart before_start = BeforeStart::hold;
    AtEnd at_end = AtEnd::hold;
    double start_position = 0.0, start_velocity = 0.0, abort_position = 0.0;
    double filter_noise = 0.0, filter_acceleration = 0.0;
};

inline std::string quoted(const std::string &text) { return "'" + text + "'"; }

// The index of a text among the known texts.
inline int choice(const std::string &name, const std::string &text,
                  const std::vector<std::string> &known)
{
    std::string all;
    for (std::size_t i = 0; i < known.size(); ++i) {
        if (known[i] == text) return static_cast<int>(i);
        all += (i ? ", " : "") + known[i];
    }
    throw std::invalid_argument(name + " must be one of " + all + ", got " + quoted(text));
}

inline double not_negative(const std::string &name, double value)
{
    if (value >= 0 && std::isfinite(value)) return value;
    throw std::invalid_argument(name + " must be >= 0 and finite, got " + std::to_string(value));
}

// The settings by `declare(name, default)`, which returns the value of a parameter; throws
// std::invalid_argument with the name, the expected value and the actual one.
template <class Model, class Declare> Settings read_settings(Declare &&declare)
{
    Settings s;
    std::vector<std::string> names;
    for (const Joint &joint : Model::joints) names.emplace_back(joint.name);
    s.joints = declare("joints", names);
    if (s.joints.size() != names.size())
        throw std::invalid_argument("joints must be the " + std::to_string(names.size()) +
                                    " names of the model's joints, got " +
                                    std::to_string(s.joints.size()));
    s.scale = declare("scale", std::vector<double>(Model::efforts.size(), 1.0));
    if (s.scale.size() != Model::efforts.size())
        throw std::invalid_argument("scale must have a number for each of the " +
                                    std::to_string(Model::efforts.size()) + " efforts, got " +
                                    std::to_string(s.scale.size()));
    const auto text = [&declare](const char *name, const char *value) {
        return declare(name, std::string(value));
    };
    s.starts_by_message =
        choice("start", text("start", "activation"), {"activation", "message"}) == 1;
    s.before_start = static_cast<BeforeStart>(
        choice("before_start", text("before_start", "hold"), {"hold", "zero"}));
    s.at_end = static_cast<AtEnd>(choice("at_end", text("at_end", Model::hold ? "hold" : "zero"),
                                         {"hold", "zero", "error"}));
    if (s.at_end == AtEnd::hold && !Model::hold)
        throw std::invalid_argument("at_end: hold is impossible: the reference ends in motion");
    const auto number = [&declare](const char *name, double value) {
        return not_negative(name, declare(name, value));
    };
    s.start_position = number("start_tolerance.position", Model::start_position);
    s.start_velocity = number("start_tolerance.velocity", Model::start_velocity);
    s.abort_position = number("abort_tolerance.position", 0.0);
    s.filter_noise = number("filter.noise", 0.0);
    s.filter_acceleration = number("filter.acceleration", 1.0);
    if (s.filter_noise > 0 && !(s.filter_acceleration > 0))
        throw std::invalid_argument("filter.acceleration must be > 0 with filter.noise > 0");
    return s;
}

} // namespace nh_control
#endif
