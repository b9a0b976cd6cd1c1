"""A function with all operations that are translated into other languages."""

import casadi as ca


def every_operation():
    """A function of two numbers with all operations, and those that it has."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    unary = "exp log sqrt sin cos tan asin acos atan floor ceil fabs sign erf sinh cosh tanh"
    unary += " asinh acosh atanh log1p expm1 sq"
    values = [
        getattr(ca, name)(each) for name in unary.split() if hasattr(ca, name) for each in (x, y)
    ]
    values += [f(x, y) for f in (ca.fmod, ca.copysign, ca.fmin, ca.fmax, ca.atan2, ca.hypot)]
    values += [x + y, x - y, x * y, x / y, -x, 1 / x, x + x, x * x, x**y, x**3.3, x < y, x <= y]
    values += [ca.eq(x, y), ca.ne(x, y), ca.logic_and(x, y), ca.logic_or(x, y), ca.logic_not(x)]
    values += [ca.if_else(x < y, ca.sin(x), ca.cos(y)), ca.sin(x + y) * ca.cos(x + y), ca.inf * x]
    return ca.Function("all", [x, y], [ca.vertcat(*values)])
