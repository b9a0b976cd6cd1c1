// Pinocchio's steps and derivatives of a tree, called once for many of them by pinocchio_steps.py.

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/multibody.hpp>

namespace pin = pinocchio;

struct Tree {
  pin::Model model;
  pin::Data data;
  Eigen::VectorXd effort;
};

using Numbers = const double *;

static Eigen::Map<const Eigen::VectorXd> numbers(Numbers at, Eigen::Index count) {
  return {at, count};
}

static pin::SE3 placement(Numbers at) {  // position, rotation by rows
  using Rows = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
  return pin::SE3(Eigen::Map<const Rows>(at + 3), Eigen::Map<const Eigen::Vector3d>(at));
}

static pin::JointModel joint(int kind, const Eigen::Vector3d &axis) {
  if (kind == 0) return pin::JointModelFreeFlyer();
  const bool turns = kind == 1;
  if (axis == Eigen::Vector3d::UnitX())
    return turns ? pin::JointModel(pin::JointModelRX()) : pin::JointModel(pin::JointModelPX());
  if (axis == Eigen::Vector3d::UnitY())
    return turns ? pin::JointModel(pin::JointModelRY()) : pin::JointModel(pin::JointModelPY());
  if (axis == Eigen::Vector3d::UnitZ())
    return turns ? pin::JointModel(pin::JointModelRZ()) : pin::JointModel(pin::JointModelPZ());
  return turns ? pin::JointModel(pin::JointModelRevoluteUnaligned(axis))
               : pin::JointModel(pin::JointModelPrismaticUnaligned(axis));
}

extern "C" {

// A tree without bodies. Of every joint: its parent's number from 1, 0 for the world; 0 floating,
// 1 revolute, 2 prismatic; placement and axis (12 + 3).
void *tree_new(int joints, const int *parents, const int *kinds, Numbers frames, double gravity) {
  pin::Model model;
  for (int i = 0; i < joints; ++i) {
    const Numbers at = frames + 15 * i;
    const Eigen::Vector3d axis = Eigen::Map<const Eigen::Vector3d>(at + 12);
    model.addJoint(parents[i], joint(kinds[i], axis), placement(at), "q" + std::to_string(i));
  }
  model.gravity.linear() = Eigen::Vector3d(0, 0, -gravity);
  return new Tree{model, pin::Data(model), Eigen::VectorXd::Zero(model.nv)};
}

// Attach a body: mass, center, inertia about the center by rows.
void tree_body(void *tree, int parent, Numbers frame, double mass, Numbers center, Numbers inertia) {
  Tree &t = *static_cast<Tree *>(tree);
  const Eigen::Matrix3d about = Eigen::Map<const Eigen::Matrix3d>(inertia);
  const pin::Inertia body(mass, Eigen::Map<const Eigen::Vector3d>(center), about);
  t.model.appendBodyToJoint(parent, body, placement(frame));
  t.data = pin::Data(t.model);
}

int tree_nv(void *tree) { return static_cast<Tree *>(tree)->model.nv; }

void tree_accelerations(void *tree, Numbers q, Numbers v, double *a) {
  Tree &t = *static_cast<Tree *>(tree);
  pin::aba(t.model, t.data, numbers(q, t.model.nq), numbers(v, t.model.nv), t.effort);
  Eigen::Map<Eigen::VectorXd>(a, t.model.nv) = t.data.ddq;
}

// Steps of semi-implicit Euler with the articulated body algorithm; the state moves to their end.
void tree_steps(void *tree, double *q_end, double *v_end, double h, int steps) {
  Tree &t = *static_cast<Tree *>(tree);
  Eigen::Map<Eigen::VectorXd> q(q_end, t.model.nq), v(v_end, t.model.nv);
  Eigen::VectorXd moved(t.model.nv), next(t.model.nq);
  for (int i = 0; i < steps; ++i) {
    v += h * pin::aba(t.model, t.data, q, v, t.effort);
    moved = h * v;
    pin::integrate(t.model, q, moved, next);
    q = next;
  }
}

// Steps of the classical Runge-Kutta method of order 4 for joints with one coordinate each.
void tree_runge_kutta(void *tree, double *q_end, double *v_end, double h, int steps) {
  Tree &t = *static_cast<Tree *>(tree);
  Eigen::Map<Eigen::VectorXd> q(q_end, t.model.nq), v(v_end, t.model.nv);
  Eigen::VectorXd a1, a2, a3, a4, v2, v3, v4, at;
  for (int i = 0; i < steps; ++i) {
    a1 = pin::aba(t.model, t.data, q, v, t.effort);
    at = q + h / 2 * v, v2 = v + h / 2 * a1;
    a2 = pin::aba(t.model, t.data, at, v2, t.effort);
    at = q + h / 2 * v2, v3 = v + h / 2 * a2;
    a3 = pin::aba(t.model, t.data, at, v3, t.effort);
    at = q + h * v3, v4 = v + h * a3;
    a4 = pin::aba(t.model, t.data, at, v4, t.effort);
    q += h / 6 * (v + 2 * v2 + 2 * v3 + v4);
    v += h / 6 * (a1 + 2 * a2 + 2 * a3 + a4);
  }
}

// Derivatives of the accelerations by positions, velocities and efforts, again and again.
void tree_derivatives(void *tree, Numbers q, Numbers v, int times) {
  Tree &t = *static_cast<Tree *>(tree);
  for (int i = 0; i < times; ++i)
    pin::computeABADerivatives(
        t.model, t.data, numbers(q, t.model.nq), numbers(v, t.model.nv), t.effort);
}
}
