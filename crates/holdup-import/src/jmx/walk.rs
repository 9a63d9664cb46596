//! Walks through a plan's controllers and samplers in order, and turns each into steps.
//! [`super::look`] handles all other elements.

mod rounds;

use super::Plan;
use super::element::Element;
use super::expression;
use super::names::Counterpart;
use super::piece::pieces;
use super::timer;
use crate::error::ImportError;
use crate::load::{LONGEST, length};
use crate::scenario::Step;
use crate::template::{label, literal};

/// Deepest nesting of controllers; a scenario's steps may be nested a little deeper.
const DEEPEST: usize = 50;

/// The steps of an element, or why the plan cannot be imported at all.
pub(super) type Steps = Result<Vec<Step>, ImportError>;

/// A loop around a step, for controllers that act in its first round only.
pub(super) enum Round {
    /// The loop has only one round.
    Single,
    /// Rounds are counted; the variable is set once a controller needs it.
    Counted(Option<String>),
    /// Rounds are not counted.
    Uncounted,
}

/// The surroundings of an element.
pub(super) struct Surroundings<'e> {
    /// The plan, the thread group, controllers: the outermost first.
    pub scope: Vec<&'e Element<'e>>,
    pub rounds: Vec<Round>,
    /// The consequence of a failed request; `None` is the default.
    pub on_failure: Option<&'static str>,
}

impl Plan<'_> {
    /// Steps of all children of the innermost element of `around`.
    pub(super) fn steps(&mut self, around: &mut Surroundings<'_>) -> Steps {
        let Some(parent) = around.scope.last().copied() else { return Ok(Vec::new()) };
        self.steps_of(parent.children.iter(), around)
    }

    /// Steps of some of them.
    pub(super) fn steps_of<'e>(
        &mut self,
        children: impl Iterator<Item = &'e Element<'e>>,
        around: &mut Surroundings<'e>,
    ) -> Steps {
        let mut steps = Vec::new();
        for child in children {
            steps.extend(self.step(child, around)?);
        }
        Ok(steps)
    }

    fn inside<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        if around.scope.len() > DEEPEST {
            return Err(self.wrong(at.line, format!("controllers are nested deeper than {DEEPEST}")));
        }
        around.scope.push(at);
        let steps = self.steps(around);
        around.scope.pop();
        steps
    }

    fn step<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        Ok(match at.class.as_str() {
            "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2" => {
                at.children.iter().for_each(|child| self.look_at(child));
                self.http(at, &around.scope, around.on_failure)?
            }
            "TestAction" => self.action(at, around),
            "GenericController" | "RecordingController" => self.inside(at, around)?,
            "CriticalSectionController" => {
                self.changed(at, "sessions pass it at the same time, not one after the other", "");
                self.inside(at, around)?
            }
            "TransactionController" => self.transaction(at, around)?,
            "LoopController" => self.counted(at, around)?,
            "OnceOnlyController" => self.once_only(at, around)?,
            "IfController" => self.conditional(at, around)?,
            "WhileController" => self.repeat_while(at, around)?,
            "ForeachController" => self.for_each(at, around)?,
            "ThroughputController" => self.share(at, around)?,
            "RandomController" => self.one_of(at, around, Step::Choose)?,
            "RandomOrderController" => {
                self.changed(at, "its children run in their order, not in a random one", "");
                self.inside(at, around)?
            }
            "InterleaveControl" => self.one_of(at, around, Step::InTurn)?,
            "SwitchController" => self.switched(at, around)?,
            "RunTime" => self.run_time(at, around)?,
            "RandomVariableConfig" => self.random_variable(at),
            "ModuleController" | "IncludeController" => {
                let what = if at.class == "ModuleController" { "another part of the plan" } else { "another file" };
                self.left_out(
                    at,
                    &format!("it runs {what}, which is not followed"),
                    "copy it to where it is used, and import again",
                );
                Vec::new()
            }
            class if class.ends_with("Sampler") || class.ends_with("SamplerProxy") || is_sampler_gui(at.gui) => {
                self.other_sampler(at);
                at.children.iter().for_each(|child| self.look_at(child));
                Vec::new()
            }
            _ if has_requests(at) => {
                self.changed(
                    at,
                    "this controller is unknown: its children are carried over without it",
                    "check that this is intended",
                );
                self.inside(at, around)?
            }
            _ => {
                self.not_a_step(at, around);
                Vec::new()
            }
        })
    }

    fn transaction<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let name = label(&at.name);
        let steps = self.inside(at, around)?;
        Ok(if name.is_empty() { steps } else { some(steps, |steps| Step::Group { name, steps }) })
    }

    /// An element that sends nothing.
    fn not_a_step(&mut self, at: &Element<'_>, around: &Surroundings<'_>) {
        if timer::is_pacer(&at.class) && around.scope.len() > 2 {
            self.left_out(
                at,
                "it holds the rate of a part of a thread group; a scenario has one rate for the load",
                "write the load under load",
            );
        } else {
            self.look_at(at);
        }
    }

    fn action(&mut self, at: &Element<'_>, around: &Surroundings<'_>) -> Vec<Step> {
        let all_threads = at.filled("ActionProcessor.target") == Some("2");
        match at.filled("ActionProcessor.action").unwrap_or("1") {
            "1" => {
                let text = at.filled("ActionProcessor.duration").unwrap_or("0");
                let own = self.names.number(text).filter(|ms| (0.0..=LONGEST.as_millis() as f64).contains(ms));
                let mut sum = own.map_or((0.0, 0.0), |ms| (ms, ms));
                if own.is_none() {
                    self.left_out(at, "its pause is computed while the plan runs", "write think: in its place");
                }
                let around: Vec<&Element<'_>> =
                    std::iter::once(&at).chain(around.scope.iter().rev()).flat_map(|e| &e.children).collect();
                for timer in around.into_iter().filter(|e| timer::is_delay(&e.class)) {
                    if let Some((from, to)) = self.delay(timer) {
                        sum = (sum.0 + from, sum.1 + to);
                    }
                }
                timer::think(sum).into_iter().collect()
            }
            "0" | "2" if all_threads => vec![Step::End("run")],
            "0" | "2" | "3" => vec![Step::End("session")],
            _ => {
                self.left_out(at, "a loop can't be left or begun again from within", "use while: with a condition");
                Vec::new()
            }
        }
    }

    fn counted<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let text = at.filled("LoopController.loops").unwrap_or("-1");
        let fixed = self.names.number(text);
        let is_endless = at.flag("LoopController.continue_forever") && fixed.is_some_and(|n| n < 0.0)
            || fixed.is_some_and(|n| n < 0.0);
        around.rounds.push(if is_endless { Round::Uncounted } else { Round::Counted(None) });
        let steps = self.inside(at, around)?;
        let counter = if let Some(Round::Counted(counter)) = around.rounds.pop() { counter } else { None };
        if is_endless {
            return Ok(some(steps, |steps| Step::During { length: length(LONGEST), steps }));
        }
        let is_constant = !text.contains("${");
        let count = match fixed.filter(|n| (0.0..=1e12).contains(n)) {
            Some(n) if is_constant => format!("{}", n as u64),
            None if is_constant => {
                self.changed(at, "its number of rounds is not a number; the scenario has one round", "");
                "1".to_owned()
            }
            _ => self.template(text, at, &mut Vec::new()),
        };
        Ok(some(steps, |steps| Step::Repeat { count, counter, steps }))
    }

    fn once_only<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let mut steps = self.inside(at, around)?;
        let condition = match around.rounds.last_mut() {
            None | Some(Round::Single) => return Ok(steps),
            Some(Round::Counted(counter)) => {
                let name = counter.get_or_insert_with(|| self.names.used_names.name("round"));
                format!("${{{name}}} == 0")
            }
            Some(Round::Uncounted) => {
                let name = self.names.used_names.name("once");
                steps.push(Step::Set(vec![(name.clone(), "done".to_owned())]));
                format!("not {name} exists")
            }
        };
        Ok(some(steps, |steps| Step::If { condition, steps, otherwise: Vec::new() }))
    }

    fn conditional<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let steps = self.inside(at, around)?;
        let condition = self.condition_in(at, "IfController.condition");
        Ok(some(steps, |steps| Step::If { condition, steps, otherwise: Vec::new() }))
    }

    /// The condition in one of an element's properties, or a switch in its place.
    fn condition_in(&mut self, at: &Element<'_>, property: &str) -> String {
        let text = at.text(property).unwrap_or_default();
        self.condition(text, at.line).unwrap_or_else(|| self.switch(at, "its condition", text, "false"))
    }

    /// A switch for the user to set, for a condition that cannot be translated.
    fn switch(&mut self, at: &Element<'_>, what: &str, text: &str, value: &str) -> String {
        let stem = if at.name.trim().is_empty() { at.class.clone() } else { at.name.clone() };
        let short: String = text.trim().chars().take(200).collect();
        let comment = format!("whether {} runs its steps; in the plan: {short}", at.title());
        let wanted = format!("do_{stem}");
        let own = self.names.text(&wanted, value.to_owned(), &comment);
        let advice = format!("its steps run if vars.{own} is true (now {value}); or write a condition");
        self.changed(at, format!("holdup can't translate {what}"), advice);
        format!("${{{own}}} == true")
    }

    fn for_each<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let steps = self.uncounted(at, around)?;
        let input = at.filled("ForeachController.inputVal").unwrap_or_default();
        let item = at.filled("ForeachController.returnVal").unwrap_or("item");
        let item = self.names.variable(item);
        match self.names.meaning(input).cloned() {
            Some(Counterpart::List(list)) => {
                if at.filled("ForeachController.startIndex").is_some_and(|s| s != "0")
                    || at.filled("ForeachController.endIndex").is_some()
                {
                    self.changed(at, "it goes through the whole list, not only from one index to another", "");
                }
                Ok(some(steps, |steps| Step::ForEach { list, item, steps }))
            }
            _ => {
                let why = format!("\"{input}\" is not a list from an extractor with match number -1");
                self.left_out(at, &why, "write for_each: over a list that a capture made (pick: all)");
                Ok(Vec::new())
            }
        }
    }

    fn share<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let steps = self.inside(at, around)?;
        let percent = at.filled("ThroughputController.percentThroughput").and_then(|text| self.names.number(text));
        let is_percent = at.filled("ThroughputController.style") == Some("1");
        let condition = match percent.filter(|p| is_percent && (0.0..=100.0).contains(p)) {
            Some(100.0) => return Ok(steps),
            Some(percent) if percent.fract() == 0.0 => format!("${{random(1, 100)}} <= {percent}"),
            Some(percent) => format!("${{random(1, 10000)}} <= {}", (percent * 100.0).round()),
            None => {
                let text = at.filled("ThroughputController.maxThroughput").unwrap_or_default().to_owned();
                self.switch(at, "a number of executions in all", &text, "true")
            }
        };
        Ok(some(steps, |steps| Step::If { condition, steps, otherwise: Vec::new() }))
    }

    /// Steps of each child that has any, with the child's name.
    fn branches<'e>(
        &mut self,
        at: &'e Element<'e>,
        around: &mut Surroundings<'e>,
    ) -> Result<Vec<(&'e str, Vec<Step>)>, ImportError> {
        around.scope.push(at);
        let mut all = Vec::new();
        for child in &at.children {
            all.push((child.name.as_str(), self.step(child, around)?));
        }
        around.scope.pop();
        all.retain(|(_, steps)| !steps.is_empty());
        Ok(all)
    }

    /// One of the branches at a time, as `make` says.
    fn one_of<'e>(
        &mut self,
        at: &'e Element<'e>,
        around: &mut Surroundings<'e>,
        make: fn(Vec<Vec<Step>>) -> Step,
    ) -> Steps {
        let branches: Vec<Vec<Step>> = self.branches(at, around)?.into_iter().map(|(_, steps)| steps).collect();
        Ok(if branches.is_empty() { Vec::new() } else { vec![make(branches)] })
    }

    fn switched<'e>(&mut self, at: &'e Element<'e>, around: &mut Surroundings<'e>) -> Steps {
        let text = at.filled("SwitchController.value").unwrap_or("0");
        let value = self.template(text, at, &mut Vec::new());
        let all = self.branches(at, around)?.into_iter().enumerate();
        if !value.contains("${") {
            let index = value.trim().parse::<usize>().ok();
            let chosen = all.into_iter().find(|(i, (name, _))| Some(*i) == index || *name == value);
            return Ok(chosen.map(|(_, (_, steps))| steps).unwrap_or_default());
        }
        let branches = all.map(|(index, (name, steps))| {
            let by_name = if name.is_empty() || name.contains(['"', '\\', '$', '\n', '\r']) {
                String::new()
            } else {
                format!(" or {value} == \"{name}\"")
            };
            Step::If { condition: format!("{value} == {index}{by_name}"), steps, otherwise: Vec::new() }
        });
        Ok(branches.collect())
    }

    fn random_variable(&mut self, at: &Element<'_>) -> Vec<Step> {
        let Some(name) = at.filled("variableName") else { return Vec::new() };
        let ends = [at.filled("minimumValue").unwrap_or("0"), at.filled("maximumValue").unwrap_or("2147483647")];
        // A constant has to be a number; a computed value is checked when it is drawn.
        let known = ends.map(|text| self.names.fixed(text).map(|fixed| fixed.trim().parse::<i64>().ok()));
        let is_wrong = known.contains(&Some(None))
            || matches!(known, [Some(low), Some(high)] if low > high)
            || ends.iter().any(|text| text.contains("${") && pieces(text).len() > 1);
        if is_wrong {
            self.left_out(at, "its bounds are not two numbers, the lower first", "");
            return Vec::new();
        }
        let own = self.names.variable(name);
        let mut end = |key: &str, default: &str| {
            let text = at.filled(key).unwrap_or(default);
            expression::expression(text, &mut self.names, &mut self.notes, ("a random variable", at.line))
        };
        let (low, high) = (end("minimumValue", "0"), end("maximumValue", "2147483647"));
        let is_word =
            |end: &String| self.names.vars.iter().any(|var| var.name == *end && var.value.parse::<i64>().is_err());
        if is_word(&low) || is_word(&high) {
            self.left_out(at, "its bounds are not numbers", "");
            return Vec::new();
        }
        let format = at.filled("outputFormat").unwrap_or_default();
        let (before, after) =
            (format.find('0').map_or("", |i| &format[..i]), format.rfind('0').map_or("", |i| &format[i + 1..]));
        if format.matches('0').count() > 1 {
            self.changed(at, "the scenario writes numbers without leading zeros", "");
        }
        vec![Step::Set(vec![(own, format!("{}${{random({low}, {high})}}{}", literal(before), literal(after)))])]
    }
}

/// A step that contains steps, if there are any.
fn some(steps: Vec<Step>, make: impl FnOnce(Vec<Step>) -> Step) -> Vec<Step> {
    if steps.is_empty() { Vec::new() } else { vec![make(steps)] }
}

fn is_sampler_gui(gui: &str) -> bool {
    gui.ends_with("SamplerGui") || gui.ends_with("SamplerUI")
}

/// Whether it contains an HTTP sampler at any depth.
fn has_requests(at: &Element<'_>) -> bool {
    at.children.iter().any(|child| child.class.starts_with("HTTPSampler") || has_requests(child))
}
