//! An AI gateway in one binary.
