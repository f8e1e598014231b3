//! Throwaway servers for tests and measurements.
