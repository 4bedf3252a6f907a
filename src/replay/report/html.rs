//! The report as a page: the table and the pictures, and nothing that runs.

use super::Report;
use super::svg::{escaped, svg};
use super::table::table;

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;\
margin:2rem auto;padding:0 1rem;color:#1f2328;background:#ffffff}\
pre{overflow-x:auto;font-size:12px}svg{width:100%;height:auto}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}}";

/// The whole page.
pub fn html(report: &Report<'_>) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <title>Longhaul: {title}</title>\n<style>{STYLE}</style></head>\n\
         <body>\n<h1>What Longhaul would have done</h1>\n<pre>{table}</pre>\n{svg}</body></html>\n",
        title = escaped(&report.heading()),
        table = escaped(&table(report)),
        svg = svg(report),
    )
}
