//! Metrics of a followed log of an app.

metrics! {
    "log", "A followed log", "log_";

    Counter LINES: Count = "log_lines_total", "Lines by `outcome`: read, without_trace or unread";
}
