//! The kinds of value that prices are written in.
//!
//! Dollars per million tokens, as price lists print them; steps as a list of
//! tables, each with the prompt size beyond which it holds and the prices that
//! change there.

use super::number::number;
use super::{Count, Kind};
use crate::config::models::{Price, PriceStep, WrittenPrices};
use toml::{Table, Value};

/// Dollars per million tokens.
pub(in crate::config) struct Dollars;

impl Kind for Dollars {
    type Value = Price;

    fn read(&self, given: &Value) -> Option<Price> {
        let dollars = number(given).filter(|dollars| *dollars <= 4_000.0)?;
        Price::from_dollars_per_million(dollars)
    }

    fn write(&self, value: &Price) -> Value {
        Value::Float(value.dollars_per_million())
    }

    fn accepts(&self) -> String {
        "dollars per million tokens, a number between 0 and 4000".to_owned()
    }
}

/// Prices that change with the size of the prompt.
pub(in crate::config) struct Steps(pub Count<u64>);

impl Kind for Steps {
    type Value = Vec<PriceStep>;

    fn read(&self, given: &Value) -> Option<Vec<PriceStep>> {
        let mut steps = given
            .as_array()?
            .iter()
            .map(|step| self.step(step.as_table()?))
            .collect::<Option<Vec<PriceStep>>>()?;
        steps.sort_by_key(|step| step.above);
        let distinct = steps.windows(2).all(|pair| match pair {
            [first, second] => first.above < second.above,
            _ => true,
        });
        distinct.then_some(steps)
    }

    fn write(&self, value: &Vec<PriceStep>) -> Value {
        let steps = value.iter().map(|step| {
            let mut table = Table::new();
            table.insert("above".to_owned(), self.0.write(&step.above));
            let prices = step.prices;
            for (name, price) in [
                ("input", prices.input),
                ("write_5m", prices.write_5m),
                ("write_1h", prices.write_1h),
                ("read", prices.read),
                ("output", prices.output),
            ] {
                if let Some(price) = price {
                    table.insert(name.to_owned(), Dollars.write(&price));
                }
            }
            Value::Table(table)
        });
        Value::Array(steps.collect())
    }

    fn accepts(&self) -> String {
        "a list of { above = TOKENS, input, write_5m, write_1h, read, output }, \
         each beyond another size, prices in dollars per million tokens"
            .to_owned()
    }
}

impl Steps {
    fn step(&self, table: &Table) -> Option<PriceStep> {
        let mut above = None;
        let mut prices = WrittenPrices::default();
        for (name, value) in table {
            let price = match name.as_str() {
                "above" => {
                    above = Some(self.0.read(value)?);
                    continue;
                }
                "input" => &mut prices.input,
                "write_5m" => &mut prices.write_5m,
                "write_1h" => &mut prices.write_1h,
                "read" => &mut prices.read,
                "output" => &mut prices.output,
                _ => return None,
            };
            *price = Some(Dollars.read(value)?);
        }
        let above = above.filter(|_| !prices.is_empty())?;
        Some(PriceStep { above, prices })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Vec<PriceStep>> {
        let table: Table = format!("steps = {text}").parse().unwrap();
        Steps(Count(1, 1_000_000)).read(&table["steps"])
    }

    #[test]
    fn steps_are_ordered_by_size_and_name_known_prices() {
        let steps = read("[{ above = 9, input = 2 }, { above = 5, output = 1.5 }]").unwrap();
        let above: Vec<u64> = steps.iter().map(|step| step.above).collect();
        assert_eq!(above, [5, 9]);
        for wrong in [
            "[{ input = 2 }]",
            "[{ above = 5 }]",
            "[{ above = 5, input = -1 }]",
            "[{ above = 5, imput = 1 }]",
            "[{ above = 5, input = 1 }, { above = 5, input = 2 }]",
            "[5]",
            "5",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn written_steps_read_back() {
        let steps = read("[{ above = 100000, input = 0.5, read = 0.05, output = 2.5 }]").unwrap();
        let kind = Steps(Count(1, 1_000_000));
        assert_eq!(kind.read(&kind.write(&steps)), Some(steps));
    }
}
