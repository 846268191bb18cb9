//! Data sources: files in the usual formats, the included digits, and synthetic data. A source
//! returns a [`Raw`] table; preparation is the same for all.

mod cells;
mod cifar;
mod covtype;
mod csv;
mod digits;
mod file;
mod heart;
mod idx;
mod integers;
mod libsvm;
mod look;
mod names;
mod new;
mod npy;
mod npy_header;
mod npz;
mod raw;
mod synthetic;
mod text;
mod zip;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use cells::Odd;
pub(super) use file::find;
pub(super) use look::{RawLook, look_csv, look_raw};
pub(super) use names::SEPARATOR;
pub use new::{Named, Needed, NewRows, new_rows};
pub use raw::{Class, Part, Raw, Table, Usual};

use crate::config::{Entry, Params, Registry};
use crate::error::Result;

/// Reads or generates a data set.
pub type SourceBuild = dyn Fn(&Where) -> Result<Raw> + Send + Sync;

/// The folder that holds the data sets, and the seed of the draws from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Where {
    /// The folder with `mnist/`, `covtype/` and so on in it.
    pub directory: PathBuf,
    /// The seed.
    pub seed: u64,
}

impl Where {
    /// The folder given, else the one that `LOPA_DATA_DIR` names, else `data`.
    pub fn new(given: Option<&Path>, seed: u64) -> Where {
        let named = || std::env::var_os("LOPA_DATA_DIR").filter(|name| !name.is_empty());
        let directory = given.map(Path::to_path_buf).or_else(|| named().map(PathBuf::from));
        Where { directory: directory.unwrap_or_else(|| "data".into()), seed }
    }
}

/// The data sources that come with the library.
pub fn sources() -> Registry<SourceBuild> {
    let entries = vec![
        entry(
            "digits",
            "UCI optical digits, 1797 rows of 64 (included; E. Alpaydin and C. Kaynak, CC BY 4.0)",
            digits::read,
        ),
        entry(
            "heart",
            "UCI heart disease, 920 rows of four hospitals with missing values (included; \
             A. Janosi and others, CC BY 4.0)",
            heart::read,
        ),
        entry("blobs", "synthetic Gaussian classes, dense or sparse", synthetic::blobs),
        entry(
            "logistic",
            "synthetic binary data of growing variance from group to group, as in MA-DSBO",
            synthetic::logistic,
        ),
        entry(
            "mnist",
            "MNIST handwritten digits, 60000 + 10000 images of 784 pixels (IDX files)",
            idx::mnist,
        ),
        entry(
            "fashion-mnist",
            "Fashion-MNIST clothes, 60000 + 10000 images of 784 pixels (IDX files)",
            idx::fashion,
        ),
        entry(
            "covtype",
            "UCI Covertype, 581012 rows of 54 features, 7 kinds of forest",
            covtype::read,
        ),
        entry(
            "cifar10",
            "CIFAR-10 photographs of 3072 pixels (binary batches, as many as there are)",
            cifar::read,
        ),
        entry(
            "csv",
            "a table of numbers in a text file, with a column of labels or of numbers to predict",
            csv::read,
        ),
        entry("libsvm", "a text file in LIBSVM format, kept sparse", libsvm::read),
        entry("npy", "NumPy arrays of features and labels, a file each", npy::read),
        entry("npz", "NumPy arrays of features and labels in one archive", npz::read),
    ];
    Registry::new("data set", entries)
}

/// An entry of the registry: `read` gets the data.
pub fn entry<P: Params>(
    name: impl Into<String>,
    about: impl Into<String>,
    read: fn(&P, &Where) -> Result<Raw>,
) -> Entry<SourceBuild> {
    Entry::new(name, about, move |params: P| -> Arc<SourceBuild> {
        Arc::new(move |place: &Where| read(&params, place))
    })
}
