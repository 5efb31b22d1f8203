//! Thin safe wrappers over the kernel; the home of unsafe.
