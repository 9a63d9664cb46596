//! Steps that run others again, or only if something holds: they become jumps.

use super::{Reader, counter};
use crate::script::program::{Flow, Op, Times};
use crate::yaml::{Map, Node, YamlError};

impl Reader<'_> {
    /// The steps a number of times.
    pub(super) fn repeat(&mut self, node: &Node, map: &Map<'_>, flow: &mut Flow) -> Result<(), YamlError> {
        let times = node.text()?;
        let times = match times.parse() {
            Ok(times) => Times::Fixed(times),
            Err(_) if times.contains("${") => Times::Said(self.template(node, times)?),
            Err(_) => return Err(node.error(format!("\"{times}\" is not a number of repetitions"))),
        };
        let shown_as = map.get("as").map(|n| self.slot(n)).transpose()?;
        let rounds = counter(flow);
        // If a template gives the number of rounds, the next counter holds it.
        counter(flow);
        self.rounds(map, flow, rounds, |exit| Op::Repeat { counter: rounds, times, shown_as, exit })
    }

    /// The steps as long as a condition holds.
    pub(super) fn repeat_while(&mut self, node: &Node, map: &Map<'_>, flow: &mut Flow) -> Result<(), YamlError> {
        let condition = self.condition(node, node.text()?)?;
        let start = flow.ops.len();
        flow.ops.push(Op::Jump(0));
        self.steps(map.need("steps")?, flow)?;
        flow.ops.push(Op::Jump(start as u32));
        flow.ops[start] = Op::Unless(condition, flow.ops.len() as u32);
        Ok(())
    }

    /// The steps again if one of them fails.
    pub(super) fn retry(&mut self, node: &Node, map: &Map<'_>, flow: &mut Flow) -> Result<(), YamlError> {
        let most = node.integer("times", 1..=1_000)?;
        let counter = counter(flow);
        flow.ops.push(Op::Reset(counter));
        let start = flow.ops.len();
        flow.ops.push(Op::Jump(0));
        self.steps(map.need("steps")?, flow)?;
        flow.ops.push(Op::Tried);
        flow.ops[start] = Op::Try { counter, most, exit: flow.ops.len() as u32 };
        Ok(())
    }

    /// The steps if a condition holds, else those of `else`.
    pub(super) fn only_if(&mut self, node: &Node, map: &Map<'_>, flow: &mut Flow) -> Result<(), YamlError> {
        let condition = self.condition(node, node.text()?)?;
        let start = flow.ops.len();
        flow.ops.push(Op::Jump(0));
        self.steps(map.need("steps")?, flow)?;
        let Some(other) = map.get("else") else {
            flow.ops[start] = Op::Unless(condition, flow.ops.len() as u32);
            return Ok(());
        };
        let then_end = flow.ops.len();
        flow.ops.push(Op::Jump(0));
        flow.ops[start] = Op::Unless(condition, flow.ops.len() as u32);
        self.steps(other, flow)?;
        flow.ops[then_end] = Op::Jump(flow.ops.len() as u32);
        Ok(())
    }

    /// A loop: `head` makes its first step from the place after the loop.
    pub(super) fn rounds(
        &mut self,
        map: &Map<'_>,
        flow: &mut Flow,
        counter: u32,
        head: impl FnOnce(u32) -> Op,
    ) -> Result<(), YamlError> {
        flow.ops.push(Op::Reset(counter));
        let start = flow.ops.len();
        flow.ops.push(Op::Jump(0));
        self.steps(map.need("steps")?, flow)?;
        flow.ops.push(Op::Jump(start as u32));
        flow.ops[start] = head(flow.ops.len() as u32);
        Ok(())
    }
}
