//! The loop between profile, keys and terminal.

use super::draw;
use super::figures::{Figures, plain};
use super::recorder::Recorder;
use super::screen::Screen;
use crate::output;
use anyhow::{Context, bail};
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use nodewise_pipeline::{self as followed, Followed, Look};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Keys are answered at once, all else within this.
const TURN: Duration = Duration::from_millis(100);
/// A printed screen is not waited for longer: the kernel looks at a program after about a second, then again after at
/// most a minute, and never at one that sleeps.
const PATIENCE: Duration = Duration::from_secs(90);
/// Lines of a screen that is printed.
const LINES: u16 = 40;

/// What became of the profile.
enum News {
    Figures(Box<Figures>),
    Message(String),
    Live(bool),
}

/// Shows it until somebody has seen enough. The terminal is put back whatever happens.
pub fn live(profile: Followed<Figures>, mut recorder: Option<Recorder>) -> anyhow::Result<()> {
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let mut profile = profile;
    let mut screen = Screen {
        colour: output::Screen::of_stdout().colour,
        ..Screen::default()
    };
    first(&mut profile, recorder.is_some(), &mut screen)?;
    let news = follow(profile);
    let mut terminal = ratatui::try_init().context("cannot use this terminal")?;
    let shown = turns(&mut terminal, &mut screen, &news, &signals, recorder.as_mut());
    ratatui::restore();
    shown
}

/// A profile that cannot be read is an error before there is a screen.
fn first(profile: &mut Followed<Figures>, recorded: bool, screen: &mut Screen) -> anyhow::Result<()> {
    match profile.look() {
        Look::New(figures) => screen.take(figures),
        Look::Waits(why) if recorded || profile.live() => screen.message = Some(why),
        Look::Waits(why) => bail!("{why}"),
        Look::Failed(error) => return Err(error),
        Look::Same => {}
    }
    screen.live = recorded || profile.live();
    Ok(())
}

/// Reads the profile whenever it changes, away from the keys.
fn follow(mut profile: Followed<Figures>) -> Receiver<News> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        loop {
            let began = Instant::now();
            let found = match profile.look() {
                Look::Same => None,
                Look::New(figures) => Some(News::Figures(Box::new(figures))),
                Look::Waits(why) => Some(News::Message(why)),
                Look::Failed(error) => Some(News::Message(format!("{error:#}"))),
            };
            let news = found.into_iter().chain([News::Live(profile.live())]);
            if news.map(|n| sender.send(n)).any(|sent| sent.is_err()) {
                return; // nobody looks any more
            }
            std::thread::sleep(followed::rest(began));
        }
    });
    receiver
}

fn turns(
    terminal: &mut ratatui::DefaultTerminal,
    screen: &mut Screen,
    news: &Receiver<News>,
    signals: &Signals,
    mut recorder: Option<&mut Recorder>,
) -> anyhow::Result<()> {
    loop {
        hear(news, screen)?;
        if let Some(said) = recorder.as_mut().and_then(|r| r.ended()) {
            if screen.figures.is_none() && !screen.live {
                bail!("{said}");
            }
            screen.message = Some(plain(&said));
        }
        terminal.draw(|frame| draw::draw(frame, screen))?;
        if signals.wait(Duration::ZERO).is_some() || pressed(screen)? {
            return Ok(());
        }
    }
}

/// Whatever there is by now.
fn hear(news: &Receiver<News>, screen: &mut Screen) -> anyhow::Result<()> {
    loop {
        match news.try_recv() {
            Ok(News::Figures(figures)) => screen.take(*figures),
            Ok(News::Message(message)) => screen.message = Some(plain(&message)),
            Ok(News::Live(live)) => screen.live = live,
            Err(TryRecvError::Empty) => return Ok(()),
            Err(TryRecvError::Disconnected) => bail!("the profile cannot be followed any longer"),
        }
    }
}

/// Takes keys for a turn; whether one of them was to leave.
fn pressed(screen: &mut Screen) -> anyhow::Result<bool> {
    if !event::poll(TURN)? {
        return Ok(false);
    }
    let Event::Key(key) = event::read()? else {
        return Ok(false); // another size: it is drawn anew anyway
    };
    let interrupted = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    Ok(interrupted || key.kind != KeyEventKind::Release && screen.press(key.code))
}

/// One screen as text, as soon as there is something on it.
pub fn once(mut profile: Followed<Figures>, mut recorder: Option<Recorder>) -> anyhow::Result<()> {
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let mut screen = Screen {
        printed: true,
        ..Screen::default()
    };
    let began = Instant::now();
    while screen.figures.is_none() {
        let ended = recorder.as_mut().and_then(Recorder::ended);
        match profile.look() {
            Look::New(figures) => screen.take(figures),
            Look::Failed(error) => return Err(ended.map_or(error, anyhow::Error::msg)),
            Look::Waits(_) | Look::Same if ended.is_some() => bail!("{}", ended.unwrap_or_default()),
            Look::Waits(why) if recorder.is_none() => bail!("{why}"),
            Look::Waits(why) if began.elapsed() > PATIENCE => {
                bail!("nothing to show after {} s: {why}", PATIENCE.as_secs())
            }
            Look::Waits(_) | Look::Same if signals.wait(TURN).is_some() => bail!("stopped"),
            Look::Waits(_) | Look::Same => {}
        }
    }
    screen.live = profile.live();
    let width = u16::try_from(output::Screen::of_stdout().width).unwrap_or(u16::MAX);
    let mut terminal = Terminal::new(TestBackend::new(width.min(300), LINES))?;
    terminal.draw(|frame| draw::draw(frame, &screen))?;
    output::print(&draw::text(terminal.backend().buffer()))
}
