//! What is measured, one file a question.

pub mod churn;
pub mod guard;
pub mod index;
pub mod lease;
pub mod request_paths;
pub mod scale;
