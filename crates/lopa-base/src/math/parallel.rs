//! Maps many items, in parallel if there are threads.

use rayon::ThreadPool;
use rayon::prelude::*;

/// Maps items on the threads of a pool, or one by one without a pool; the results keep their order.
pub fn map<T: Send, R: Send>(
    pool: Option<&ThreadPool>,
    items: impl IntoIterator<Item = T>,
    f: impl Fn(T) -> R + Send + Sync,
) -> Vec<R> {
    match pool {
        None => items.into_iter().map(f).collect(),
        Some(pool) => {
            let items: Vec<T> = items.into_iter().collect();
            pool.install(|| items.into_par_iter().map(f).collect())
        }
    }
}
