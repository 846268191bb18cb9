//! Every compressor: the declared number of bytes, the same at both ends, and a contraction.

use lopa::engine::messages::{Compressor, compressors};
use lopa::math::random::{Purpose, Stream};
use lopa::math::real::{Real, cast};
use toml::Table;

/// Every compressor with some parameters, and the share that it must take off in the mean.
fn cases() -> Vec<(&'static str, String, f64)> {
    let some = |name, params: &str, gain| (name, params.to_string(), gain);
    vec![
        some("top-k", "share = 0.3", 0.3),
        some("top-k", "share = 1.0", 1.0),
        some("random-k", "share = 0.3", 0.2),
        some("random-k", "share = 1.0", 1.0),
        some("quantise", "bits = 2", 0.02),
        some("quantise", "bits = 8", 0.99),
        some("quantise", "bits = 16", 0.999_99),
        some("bf16", "", 0.9999),
        some("f16", "", 0.999_999),
        some("sign", "", 0.1),
    ]
}

fn get<T: Real>(name: &str, params: &str) -> std::sync::Arc<dyn Compressor<T>> {
    let params: Table = params.parse().unwrap();
    compressors().choose(name, &params).unwrap().build.get::<T>()
}

fn draw(at: u64) -> Stream {
    let mut draw = Stream::new(5, Purpose::Compression, 3);
    draw.seek(at, 0);
    draw
}

/// The error of a vector: the vector minus its decoded message.
fn left<T: Real>(compressor: &dyn Compressor<T>, vector: &[T], at: u64) -> Vec<f64> {
    let (mut order, mut wire) = (Vec::new(), vec![7]);
    compressor.encode(vector, &mut draw(at), &mut order, &mut wire);
    assert_eq!(wire.len() - 1, compressor.bytes(vector.len()));
    let mut replica = vec![T::zero(); vector.len()];
    compressor.add(&wire[1..], &mut draw(at), &mut order, &mut replica).unwrap();
    vector.iter().zip(&replica).map(|(&v, &r)| v.to_f64() - r.to_f64()).collect()
}

fn square(vector: &[f64]) -> f64 {
    vector.iter().map(|v| v * v).sum()
}

fn contracts<T: Real>(scale: f64) {
    for (name, params, gain) in cases() {
        let compressor = get::<T>(name, &params);
        let mut stream = Stream::new(1, Purpose::Data, 0);
        for length in [1, 2, 7, 100] {
            let (mut before, mut after) = (0.0, 0.0);
            for at in 0..400 {
                let vector: Vec<f64> = (0..length).map(|_| scale * stream.normal()).collect();
                let vector: Vec<T> = cast(&vector);
                before += square(&cast(&vector));
                after += square(&left(&*compressor, &vector, at));
            }
            let most = (1.0 - gain) * before * 1.01 + 1e-12 * before;
            assert!(after <= most, "{name}, {params}, {length}, {scale}: {}", after / before);
        }
    }
}

#[test]
fn every_compressor_contracts() {
    for scale in [1.0, 1e-12, 1e9] {
        contracts::<f64>(scale);
        contracts::<f32>(scale);
    }
}

/// Values that are not finite, too small or too large do no harm; and zero stays zero.
#[test]
fn nothing_panics() {
    let strange =
        [0.0, -0.0, 5e-324, f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, 1e-300, 65_520.0];
    for (name, params, _) in cases() {
        let compressor = get::<f64>(name, &params);
        for value in strange {
            for length in 0..9 {
                let mut vector = vec![1.0; length];
                vector.iter_mut().take(2).for_each(|entry| *entry = value);
                left(&*compressor, &vector, 0);
            }
        }
        assert_eq!(square(&left(&*compressor, &[0.0; 9], 0)), 0.0, "{name}");
    }
}

/// Any bytes are read or refused: no neighbour can harm by them.
#[test]
fn any_bytes_are_read_or_refused() {
    let mut stream = Stream::new(2, Purpose::Data, 0);
    let mut refused = 0;
    for (name, params, _) in cases() {
        let compressor = get::<f64>(name, &params);
        for length in [0, 1, 5, 64] {
            for _ in 0..200 {
                let count = compressor.bytes(length);
                let wire: Vec<u8> = (0..count).map(|_| stream.word() as u8).collect();
                let mut replica = vec![0.0; length];
                let read = compressor.add(&wire, &mut draw(0), &mut Vec::new(), &mut replica);
                refused += u32::from(read.is_none());
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

/// Random rounding is right in the mean, up to the factor that makes it a contraction.
#[test]
fn quantising_is_fair() {
    let compressor = get::<f64>("quantise", "bits = 3");
    let vector = [1.0, -0.4, 0.55, 0.1];
    let mut sum = [0.0; 4];
    for at in 0..20_000 {
        let left = left(&*compressor, &vector, at);
        sum.iter_mut().zip(vector.iter().zip(left)).for_each(|(sum, (v, left))| *sum += v - left);
    }
    let factor = sum[0] / 20_000.0;
    assert!(factor > 0.8 && factor <= 1.0, "{factor}");
    for (sum, v) in sum.iter().zip(vector) {
        assert!((sum / 20_000.0 - factor * v).abs() < 0.01, "{sum}");
    }
}

#[test]
fn halves_are_the_nearest() {
    // From the standard: values, and those that a tie rounds to.
    let cases = [(1.0, 1.0), (1.0 + 1.0 / 2048.0, 1.0), (1.0 + 3.0 / 2048.0, 1.0 + 4.0 / 2048.0)];
    for (value, want) in cases {
        // The 1.5 makes the scale 2.
        let left = left(&*get::<f64>("f16", ""), &[1.5, value], 0);
        assert_eq!((left[0], value - left[1]), (0.0, want));
    }
    let bf16 = get::<f64>("bf16", "");
    for (value, want) in [
        (1.0, 1.0),
        (1.003_906_25, 1.0),
        (1.011_718_75, 1.015_625),
        (1e39, 3.389_531_389_251_535_5e38),
    ] {
        assert_eq!(value - left(&*bf16, &[value], 0)[0], want);
    }
}

/// A stranger's compressor is one struct and one line.
#[test]
fn a_stranger_adds_one() {
    use lopa::engine::messages::{Compressor, compressor_entry};
    use lopa::prelude::*;
    params! {
        /// Sends the first entries.
        pub struct First { count: usize = 1; }
    }
    impl<T: Real> Compressor<T> for First {
        fn bytes(&self, length: usize) -> usize {
            self.count.min(length) * T::BYTES
        }
        fn encode(&self, vector: &[T], _: &mut Stream, _: &mut Vec<u32>, wire: &mut Vec<u8>) {
            T::extend_le(&vector[..self.count.min(vector.len())], wire);
        }
        fn add(&self, wire: &[u8], _: &mut Stream, _: &mut Vec<u32>, to: &mut [T]) -> Option<()> {
            let mut first = vec![T::zero(); wire.len() / T::BYTES];
            T::read_le(wire, &mut first);
            to.iter_mut().zip(first).for_each(|(to, first)| *to += first);
            Some(())
        }
        fn consensus_step(&self, _: f64) -> f64 {
            0.5
        }
    }
    let mut registries = Registries::default();
    registries.compressors.add(compressor_entry::<First>("first", "the first entries"));
    let text = super::heterogeneous(
        "compress = { name = 'first', count = 2 }",
        "run = { iterations = 3 }",
    );
    let text = format!("algorithm = [{{ {} }}]\n{text}", super::GT);
    let experiment = Experiment::read(&Source::new("test", text), &registries).unwrap();
    let interrupt = Default::default();
    let context = Context { pool: None, data_dir: "".into(), interrupt: &interrupt, probe: None };
    let outcome = experiment.run_with(&context, &mut (), &mut ()).unwrap().swap_remove(0);
    // 5 links, both ways, two vectors of two numbers.
    assert_eq!(outcome.row.bytes, 3 * 10 * 2 * 2 * 8);
}
