// The exported model @model@ for the tracker's core.
#ifndef @PACKAGE@_MODEL_HPP
#define @PACKAGE@_MODEL_HPP

#include <array>

#include "@name@.h"
#include "tracker_settings.hpp"

namespace @package@
{

struct Model {
    static constexpr int nx = @NAME@_NX, ndx = @NAME@_NDX, nw = @NAME@_NW, nu = @NAME@_NU;
    static constexpr int ne = @NAME@_NE, memory = @memory@;
    static constexpr double step_s = @step_s@;
    static constexpr long steps = @NAME@_STEPS;
    static constexpr bool hold = @NAME@_HOLD != 0;
    static constexpr double start_position = @start_position@, start_velocity = @start_velocity@;
    // in the order of the configuration
    static constexpr std::array<nh_control::Joint, @n_joints@> joints{{
@joints@
    }};
    static constexpr std::array<nh_control::Effort, @n_efforts@> efforts{{
@efforts@
    }};

    static int state(const double *q, const double *v, double *x) { return @name@_state(q, v, x); }
    static int velocity(const double *x, double *v) { return @name@_velocity(x, v); }
    static void local(const double *x0, const double *x1, double *dx) { @name@_local(x0, x1, dx); }
    static void retract(const double *x0, const double *dx, double *x1)
    {
        @name@_retract(x0, dx, x1);
    }
    static void target(long k, double *x) { @name@_target(k, x); }
    static void track(long k, const double *x, double *@memory_name@, double *u)
    {
        @name@_track(k, x, @memory_passed@u);
    }
    static int predict(double *x, double *P, const double *u, const double *W)
    {
        return @name@_predict(x, P, u, W);
    }
    static int update(double *x, double *P, const double *y, const double *V)
    {
        return @name@_update(x, P, y, V);
    }
};

} // namespace @package@
#endif
