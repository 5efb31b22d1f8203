pub fn words(text: &str) -> usize {
    let mut seen = std::collections::BTreeSet::new();
    text.split_whitespace().for_each(|word| {
        seen.insert(word);
    });
    seen.len()
}
