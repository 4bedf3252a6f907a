//! The official SDK of the protocol, as agents use it, against a running proxy.

use super::stock::house;
use crate::support::sdk::Sdk;

#[test]
fn the_python_sdk_uses_every_tool() {
    let house = house();
    let url = format!("http://{}/mcp", house.proxy.address);
    let block = house.own.block(2, 0);
    let lines = Sdk::mcp().run(
        &[
            ("MCP_URL", &url),
            ("MCP_SPAN", &house.own.span),
            ("MCP_BLOCK", &block),
            ("MCP_WORDS", "QUUX_RETRY_BUDGET"),
        ],
        &[],
    );
    assert_eq!(lines.len(), 12, "{lines:?}");
}
