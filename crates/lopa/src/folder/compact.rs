//! The tensors of a model file. Large ones are stored compactly: numbers that single precision
//! holds exactly take four bytes, and of a θ that is mostly zero (for example, weights of words
//! that a node never saw) only the nonzero blocks are written.
//!
//! ```text
//! theta.start   U64 (nodes + 1)            blocks of node i: start[i] to start[i + 1]
//! theta.index   U32 (blocks)               block b begins at entry index[b] · width of θ
//! theta.data    F64 or F32 (blocks × width)
//! ```
//!
//! These are the arrays of a block sparse row matrix, in the form of SciPy's `bsr_array`.

use std::borrow::Cow;

use safetensors::tensor::{Dtype, TensorView, View};
use serde::{Deserialize, Serialize};

/// The most numbers that the blocks of all nodes may represent.
const MOST: usize = 1 << 29;

/// The numbers of a tensor, in double precision; `None` if it holds anything else.
pub(super) fn numbers(view: &TensorView) -> Option<Vec<f64>> {
    match view.dtype() {
        Dtype::F64 => {
            let (words, _) = view.data().as_chunks();
            Some(words.iter().map(|&word| f64::from_le_bytes(word)).collect())
        }
        Dtype::F32 => {
            let (words, _) = view.data().as_chunks();
            Some(words.iter().map(|&word| f64::from(f32::from_le_bytes(word))).collect())
        }
        _ => None,
    }
}

/// A tensor of a model file.
pub(super) enum Tensor<'a> {
    /// Numbers.
    Rows(Rows<'a>),
    /// Anything else, as bytes.
    Bytes(Dtype, Vec<usize>, Vec<u8>),
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Tensor::Rows(rows) => rows.dtype(),
            Tensor::Bytes(dtype, ..) => *dtype,
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Tensor::Rows(rows) => &rows.shape,
            Tensor::Bytes(_, shape, _) => shape,
        }
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self {
            Tensor::Rows(rows) => rows.bytes().into(),
            Tensor::Bytes(.., bytes) => bytes.into(),
        }
    }

    fn data_len(&self) -> usize {
        match self {
            Tensor::Rows(rows) => rows.length() * rows.each(),
            Tensor::Bytes(.., bytes) => bytes.len(),
        }
    }
}

/// Rows of numbers as a tensor, turned into bytes only when they are written.
pub(super) struct Rows<'a> {
    rows: Vec<&'a [f64]>,
    shape: Vec<usize>,
    single: bool,
}

impl<'a> Rows<'a> {
    /// A matrix, or a vector if there is only one row.
    pub fn of(rows: impl Iterator<Item = &'a Vec<f64>>, vector: bool) -> Rows<'a> {
        let rows: Vec<&[f64]> = rows.map(|row| &row[..]).collect();
        let width = rows.first().map_or(0, |row| row.len());
        let shape = if vector { vec![width] } else { vec![rows.len(), width] };
        Rows { rows, shape, single: false }
    }

    /// In single precision, if it is `wanted` and loses no bit of any number.
    pub fn in_f32_if(self, wanted: bool) -> Rows<'a> {
        let exact = |number: &f64| f64::from(*number as f32).to_bits() == number.to_bits();
        let single = wanted && self.rows.iter().copied().flatten().all(exact);
        Rows { single, ..self }
    }

    fn dtype(&self) -> Dtype {
        if self.single { Dtype::F32 } else { Dtype::F64 }
    }

    fn each(&self) -> usize {
        if self.single { 4 } else { 8 }
    }

    fn length(&self) -> usize {
        self.rows.iter().map(|row| row.len()).sum()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length() * self.each());
        for number in self.rows.iter().copied().flatten() {
            match self.single {
                true => bytes.extend_from_slice(&(*number as f32).to_le_bytes()),
                false => bytes.extend_from_slice(&number.to_le_bytes()),
            }
        }
        bytes
    }
}

/// The layout of θ in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Blocks {
    /// Entries of θ.
    length: usize,
    /// Entries of a block, a divisor of the length.
    width: usize,
}

/// The blocks of all nodes that are not zero.
pub(super) struct Packed<'a> {
    blocks: Vec<&'a [f64]>,
    index: Vec<u8>,
    start: Vec<u8>,
    width: usize,
}

impl Blocks {
    /// The blocks of every node's θ; `None` unless that saves half of the space.
    pub fn of<'a>(
        classes: usize,
        theta: impl Iterator<Item = &'a Vec<f64>> + Clone,
    ) -> Option<(Blocks, Packed<'a>)> {
        let length = theta.clone().next()?.len();
        // The weights of a feature, one for each class, are zero together.
        let width = if classes > 0 && length.is_multiple_of(classes) { classes } else { 1 };
        u32::try_from(length / width).ok()?;
        if (theta.clone().count() + 1).checked_mul(length)? > MOST {
            return None;
        }
        let zero = |block: &&[f64]| block.iter().all(|number| number.to_bits() == 0);
        let all = theta.clone().flat_map(|theta| theta.chunks_exact(width));
        let (count, kept) =
            (theta.clone().count() * length / width, all.filter(|b| !zero(b)).count());
        if kept * (8 * width + 4) > count * 8 * width / 2 {
            return None;
        }
        let mut packed = Packed {
            blocks: Vec::with_capacity(kept),
            index: Vec::with_capacity(4 * kept),
            start: 0u64.to_le_bytes().to_vec(),
            width,
        };
        for theta in theta {
            for (at, block) in (0u32..).zip(theta.chunks_exact(width)).filter(|(_, b)| !zero(b)) {
                packed.blocks.push(block);
                packed.index.extend_from_slice(&at.to_le_bytes());
            }
            packed.start.extend_from_slice(&(packed.blocks.len() as u64).to_le_bytes());
        }
        Some((Blocks { length, width }, packed))
    }

    /// θ of every node; `None` if the tensors do not fit together.
    pub fn rows(
        self,
        start: &TensorView,
        index: &TensorView,
        data: &[f64],
    ) -> Option<Vec<Vec<f64>>> {
        let Blocks { length, width } = self;
        let (Dtype::U64, Dtype::U32) = (start.dtype(), index.dtype()) else { return None };
        let (start, _) = start.data().as_chunks();
        let start: Vec<u64> = start.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let (index, _) = index.data().as_chunks();
        let index: Vec<u32> = index.iter().map(|&word| u32::from_le_bytes(word)).collect();
        if width == 0
            || !length.is_multiple_of(width)
            || data.len() != index.len().checked_mul(width)?
        {
            return None;
        }
        // A small file must not claim a huge θ.
        if start.len().checked_mul(length)? > MOST {
            return None;
        }
        if start.first() != Some(&0) || start.last() != Some(&(index.len() as u64)) {
            return None;
        }
        let row = |ends: &[u64]| -> Option<Vec<f64>> {
            let blocks = usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?;
            let mut theta = vec![0.0; length];
            for (at, data) in
                index.get(blocks.clone())?.iter().zip(data.chunks_exact(width).skip(blocks.start))
            {
                let place = (*at as usize).checked_mul(width)?;
                theta.get_mut(place..place.checked_add(width)?)?.copy_from_slice(data);
            }
            Some(theta)
        };
        start.windows(2).map(row).collect()
    }
}

impl<'a> Packed<'a> {
    /// The three tensors.
    pub fn tensors(self) -> Vec<(&'static str, Tensor<'a>)> {
        let Packed { blocks, index, start, width } = self;
        let shape = vec![blocks.len(), width];
        let data = Rows { rows: blocks, shape, single: false }.in_f32_if(true);
        vec![
            ("theta.start", Tensor::Bytes(Dtype::U64, vec![start.len() / 8], start)),
            ("theta.index", Tensor::Bytes(Dtype::U32, vec![index.len() / 4], index)),
            ("theta.data", Tensor::Rows(data)),
        ]
    }
}
