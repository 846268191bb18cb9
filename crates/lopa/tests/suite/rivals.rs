//! FedAvg, FedPer, FedRep and Ditto: with complete averages they are the published methods, which have a
//! server.

use lopa::math::random::{Purpose, Stream};
use lopa::problem::{At, Bilevel};

use crate::common::bench::Bench;

const SETUP: &str = "
problem = { name = 'representation', hidden = [4], activation = 'tanh', ridge = 0.05 }
data = { name = 'blobs', rows = 90, features = 5, centres = 3 }
partition = { name = 'classes', per_node = 2 }
network = { nodes = 4, graph = 'complete', weights = 'metropolis' }
run = { iterations = 4, batch = 'full', seeds = [2] }";

type Point = (Vec<f64>, Vec<f64>);

/// A client of a server, with all of its samples.
struct Client {
    part: Box<dyn Bilevel<f64>>,
    all: Vec<u32>,
}

impl Client {
    fn grad_x(&mut self, (x, theta): &Point) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        self.part.single_level().unwrap().grad_x_g(At { x, theta }, &self.all, &mut out);
        out
    }

    fn grad_theta(&mut self, (x, theta): &Point) -> Vec<f64> {
        let mut out = vec![0.0; theta.len()];
        self.part.grad_theta_g(At { x, theta }, &self.all, &mut out);
        out
    }
}

fn minus(a: &[f64], step: f64, b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - step * b).collect()
}

fn mean(all: &[Vec<f64>]) -> Vec<f64> {
    let sum = |j: usize| all.iter().map(|one| one[j]).sum::<f64>();
    (0..all[0].len()).map(|j| sum(j) / all.len() as f64).collect()
}

/// The clients and where they start.
fn clients(bench: &Bench) -> (Vec<Client>, Vec<Point>) {
    let mut clients = Vec::new();
    let mut points = Vec::new();
    for (i, part) in bench.parts::<f64>().into_iter().enumerate() {
        let x = part.start_x(&mut Stream::new(bench.seed(), Purpose::Start, 0));
        let theta = part.start_theta(&mut Stream::new(bench.seed(), Purpose::Start, 1 + i));
        points.push((x, theta));
        clients.push(Client { all: (0..part.samples_g() as u32).collect(), part });
    }
    (clients, points)
}

/// The published method's points after some rounds: the server's part with what each client keeps.
type Server = fn(&mut [Client], &mut Vec<Point>, usize) -> Vec<Point>;

fn check(algorithm: &str, server: Server) {
    let bench = Bench::new(SETUP, algorithm);
    let mut simulation = bench.start::<f64>();
    for rounds in 1..=4 {
        simulation.iterate();
        let (mut clients, mut points) = clients(&bench);
        let expected = server(&mut clients, &mut points, rounds);
        for (i, (x, theta)) in expected.iter().enumerate() {
            let at = simulation.nodes()[i].algorithm.at();
            let pairs = at.x.iter().zip(x).chain(at.theta.iter().zip(theta));
            for (ours, theirs) in pairs {
                let off = (ours - theirs).abs();
                assert!(off < 1e-12, "{algorithm}, round {rounds}, client {i}: off by {off:e}");
            }
        }
    }
}

/// In round r the server averages what clients sent after round r − 1, and each trains again.
#[test]
fn fedrep_is_the_published_one() {
    check(
        "name = 'fedrep', alpha = 0.3, beta = 0.2, head_steps = 3, body_steps = 2",
        |all, at, rounds| {
            let mut server = at[0].0.clone();
            for _ in 0..rounds {
                let mut sent = Vec::new();
                for (client, (_, theta)) in all.iter_mut().zip(at.iter_mut()) {
                    for _ in 0..3 {
                        *theta =
                            minus(theta, 0.2, &client.grad_theta(&(server.clone(), theta.clone())));
                    }
                    let mut body = server.clone();
                    for _ in 0..2 {
                        body = minus(&body, 0.3, &client.grad_x(&(body.clone(), theta.clone())));
                    }
                    sent.push(body);
                }
                at.iter_mut().for_each(|(x, _)| *x = server.clone());
                server = mean(&sent);
            }
            at.clone()
        },
    );
}

#[test]
fn fedper_is_the_published_one() {
    check("name = 'fedper', alpha = 0.2, local_steps = 3", |all, at, rounds| {
        let mut server = at[0].0.clone();
        for _ in 0..rounds {
            let mut sent = Vec::new();
            for (client, (x, theta)) in all.iter_mut().zip(at.iter_mut()) {
                *x = server.clone();
                let mut both = (server.clone(), theta.clone());
                for _ in 0..3 {
                    let (gx, gt) = (client.grad_x(&both), client.grad_theta(&both));
                    both = (minus(&both.0, 0.2, &gx), minus(&both.1, 0.2, &gt));
                }
                *theta = both.1;
                sent.push(both.0);
            }
            server = mean(&sent);
        }
        at.clone()
    });
}

fn local(client: &mut Client, mut both: Point, step: f64, steps: usize) -> Point {
    for _ in 0..steps {
        let (gx, gt) = (client.grad_x(&both), client.grad_theta(&both));
        both = (minus(&both.0, step, &gx), minus(&both.1, step, &gt));
    }
    both
}

/// The server's model before each round, and after the last.
fn averaged(all: &mut [Client], at: &[Point], rounds: usize) -> Vec<Point> {
    let own: Vec<Vec<f64>> = at.iter().map(|(_, theta)| theta.clone()).collect();
    let mut server = vec![(at[0].0.clone(), mean(&own))];
    for _ in 1..rounds {
        let last = server[server.len() - 1].clone();
        let sent: Vec<Point> =
            all.iter_mut().map(|client| local(client, last.clone(), 0.2, 3)).collect();
        let (x, theta): (Vec<_>, Vec<_>) = sent.into_iter().unzip();
        server.push((mean(&x), mean(&theta)));
    }
    server
}

#[test]
fn fedavg_is_the_published_one() {
    check("name = 'fedavg', alpha = 0.2, local_steps = 3", |all, at, rounds| {
        let server = averaged(all, at, rounds);
        vec![server[rounds - 1].clone(); at.len()]
    });
}

#[test]
fn ditto_is_the_published_one() {
    check(
        "name = 'ditto', alpha = 0.2, beta = 0.1, pull = 0.4, local_steps = 3",
        |all, at, rounds| {
            let server = averaged(all, at, rounds);
            for (x, theta) in &server {
                for (client, own) in all.iter_mut().zip(at.iter_mut()) {
                    for _ in 0..3 {
                        let (gx, gt) = (client.grad_x(own), client.grad_theta(own));
                        let pulled = |grad: &[f64], own: &[f64], to: &[f64]| -> Vec<f64> {
                            let each = grad.iter().zip(own).zip(to);
                            each.map(|((grad, own), to)| grad + 0.4 * (own - to)).collect()
                        };
                        let (gx, gt) = (pulled(&gx, &own.0, x), pulled(&gt, &own.1, theta));
                        *own = (minus(&own.0, 0.1, &gx), minus(&own.1, 0.1, &gt));
                    }
                }
            }
            at.clone()
        },
    );
}
