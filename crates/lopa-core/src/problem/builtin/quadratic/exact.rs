//! Coefficients of a quadratic and the closed forms that follow from them.

use super::super::linalg::{Cholesky, Matrix};
use crate::math::real::{axpy, dot};
use crate::problem::Dims;

/// The coefficients of one node's f_i and g_i, and the closed forms that follow from them.
#[derive(Debug, Clone)]
pub struct Coefficients {
    pub(super) a: Matrix<f64>,
    pub(super) b: Matrix<f64>,
    pub(super) c: Vec<f64>,
    pub(super) d: Matrix<f64>,
    pub(super) e: Vec<f64>,
    pub(super) r: Matrix<f64>,
    pub(super) q: Vec<f64>,
    pub(super) factor: Cholesky,
}

impl Coefficients {
    /// 1/m Σ_i of f_i and g_i, which is a quadratic of the same form: the D_i are stacked, each
    /// divided by √m, and so are the e_i. `None` without nodes.
    pub fn mean(nodes: &[Coefficients]) -> Option<Coefficients> {
        let m = nodes.len() as f64;
        let Dims { n, p } = nodes.first()?.dims();
        let matrix = |rows, cols, of: &dyn Fn(&Coefficients) -> &Matrix<f64>| {
            let sum = |i: usize, j: usize| nodes.iter().map(|node| of(node).row(i)[j]).sum::<f64>();
            Matrix::from_fn(rows, cols, |i, j| sum(i, j) / m)
        };
        let vector = |of: &dyn Fn(&Coefficients) -> &Vec<f64>| {
            let mut mean = vec![0.0; of(&nodes[0]).len()];
            nodes.iter().for_each(|node| axpy(1.0 / m, of(node), &mut mean));
            mean
        };
        let rows: Vec<&[f64]> =
            nodes.iter().flat_map(|node| (0..node.d.rows()).map(|i| node.d.row(i))).collect();
        let a = matrix(p, p, &|node| &node.a);
        Some(Coefficients {
            factor: Cholesky::new(&a)?,
            a,
            b: matrix(p, n, &|node| &node.b),
            c: vector(&|node| &node.c),
            d: Matrix::from_fn(rows.len(), p, |i, j| rows[i][j] / m.sqrt()),
            e: nodes.iter().flat_map(|node| &node.e).map(|e| e / m.sqrt()).collect(),
            r: matrix(n, n, &|node| &node.r),
            q: vector(&|node| &node.q),
        })
    }

    /// The lengths of x and θ.
    pub fn dims(&self) -> Dims {
        Dims { n: self.b.cols(), p: self.b.rows() }
    }

    /// θ*(x) = A⁻¹(B x + c).
    pub fn theta_star(&self, x: &[f64]) -> Vec<f64> {
        let mut rhs = self.c.clone();
        self.b.add_product(1.0, x, &mut rhs);
        self.factor.solve(&rhs)
    }

    /// v*(x) = A⁻¹Dᵀ(D θ*(x) − e).
    pub fn v_star(&self, x: &[f64]) -> Vec<f64> {
        self.factor.solve(&self.d.transposed_times(&self.residual(&self.theta_star(x))))
    }

    /// ∇Φ_i(x) = R x − q + Bᵀv*(x).
    pub fn grad_phi(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.r.times(x);
        axpy(-1.0, &self.q, &mut out);
        self.b.add_transposed_product(1.0, &self.v_star(x), &mut out);
        out
    }

    /// Φ_i(x) = f_i(x, θ*(x)).
    pub fn phi(&self, x: &[f64]) -> f64 {
        let residual = self.residual(&self.theta_star(x));
        0.5 * dot(&residual, &residual) + self.r.half_square(x) - dot(x, &self.q)
    }

    /// ∇²Φ_i · x = R x + MᵀM x with M = D A⁻¹B.
    pub fn hess_phi(&self, x: &[f64]) -> Vec<f64> {
        let mx = self.d.times(&self.factor.solve(&self.b.times(x)));
        let mut out = self.r.times(x);
        let back = self.factor.solve(&self.d.transposed_times(&mx));
        self.b.add_transposed_product(1.0, &back, &mut out);
        out
    }

    fn residual(&self, theta: &[f64]) -> Vec<f64> {
        let mut residual = self.d.times(theta);
        axpy(-1.0, &self.e, &mut residual);
        residual
    }
}

/// The minimiser x* of Φ; `None` if Φ is not strongly convex, as a file's R may make it.
pub fn x_star(nodes: &[Coefficients]) -> Option<Vec<f64>> {
    let mut sums = Sums::default();
    nodes.iter().for_each(|node| sums.add(&Sums::of(node)));
    sums.x_star()
}

/// Σ_i of the columns of ∇²Φ_i and of ∇Φ_i(0), in the order of the nodes: all that x* needs of them.
#[derive(Debug, Default)]
pub(super) struct Sums(Vec<f64>);

impl Sums {
    /// The contribution of one node.
    pub(super) fn of(node: &Coefficients) -> Vec<f64> {
        let n = node.dims().n;
        let mut own = Vec::with_capacity(n * (n + 1));
        let mut axis = vec![0.0; n];
        for j in 0..n {
            axis[j] = 1.0;
            own.extend(node.hess_phi(&axis));
            axis[j] = 0.0;
        }
        own.extend(node.grad_phi(&axis));
        own
    }

    /// Adds the contribution of the next node.
    pub(super) fn add(&mut self, own: &[f64]) {
        self.0.resize(own.len(), 0.0);
        axpy(1.0, own, &mut self.0);
    }

    /// The minimiser of Φ.
    pub(super) fn x_star(self) -> Option<Vec<f64>> {
        // n (n + 1) numbers
        let n = self.0.len().isqrt();
        let (columns, gradient) = self.0.split_at_checked(n * n)?;
        let hessian = Matrix::from_fn(n, n, |i, j| columns[j * n + i]);
        // ∇Φ(0) + ∇²Φ x* = 0
        let x: Vec<f64> = gradient.iter().map(|x| -*x).collect();
        (n > 0).then(|| Some(Cholesky::new(&hessian)?.solve(&x)))?
    }
}
