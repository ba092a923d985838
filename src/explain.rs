//! x

/// x
/// # Errors
/// x
pub fn explain(_: &str) -> anyhow::Result<String> {
    anyhow::bail!("x")
}
