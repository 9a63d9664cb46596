//! From offered rates and response times to knee, breaking point and scaling law. Pure functions.
