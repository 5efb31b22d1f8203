//! One model of the findings, several writers.
