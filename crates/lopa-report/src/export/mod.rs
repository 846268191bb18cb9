//! Runs for other tools: the rows of `metrics.jsonl` as CSV, and a node's model as an ONNX file.
//!
//! Formats that other libraries write (Parquet, TensorBoard, MLflow) are written with them, by the Python
//! package.

mod csv;
mod onnx;

pub use csv::csv;
pub use onnx::onnx;
