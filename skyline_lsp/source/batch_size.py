"""Where the batch size of a program is written.

The program is followed without being run (`dataflow`) up to what feeds its model: a data loader, a library's training
configuration, a function that draws a batch. The number that arrives there knows the literals it comes from; those are
the sites, ranked. Literals whose name alone speaks of a batch size come last.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from skyline_lsp.source.config_files import CONFIG_SUFFIXES, ConfigError, integers, kind_of, read_config
from skyline_lsp.source.dataflow.branches import OutOfSteps
from skyline_lsp.source.dataflow.interpreter import MAX_STEPS, Run
from skyline_lsp.source.dataflow.loaders import TRAINING_BATCH, WHOLE_DATA
from skyline_lsp.source.dataflow.objects import bind
from skyline_lsp.source.dataflow.operators import speaks_of_batch
from skyline_lsp.source.dataflow.values import (
    ArgumentLiteral,
    Class,
    Feed,
    FileLiteral,
    Function,
    Known,
    Module,
    PythonLiteral,
    Source,
    Unknown,
    Value,
    label_of,
    names_batch_size,
    names_evaluation,
    names_training,
    qualifiers,
    sources_of,
)
from skyline_lsp.source.entry_points import EntryPointKind, find_entry_point
from skyline_lsp.source.files import Files
from skyline_lsp.source.literals import Place, find_place, named_literals
from skyline_lsp.source.site import Site, SiteKind
from skyline_lsp.source.syntax import SourceError, parse

MAX_NAME_ONLY = 40
"""Sites listed by their name alone."""

MAX_CONFIG_FILES = 60
"""Configuration files searched where no batch size was followed to its literal."""

MAX_ALTERNATIVES = 4
"""Subcommands followed where the arguments name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What is known of where a program's batch size is written."""

    sites: tuple[Site, ...]
    """Best first."""
    reason: str
    """Why none of them is editable, and where to look, for the user; empty where one is."""


def analyse(
    files: Files,
    entry_path: str,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> Analysis:
    """Where the batch size of the program at `entry_path` is written when it is run so, and why it can't be changed."""
    data = files.read(entry_path)
    if data is None:
        return Analysis(sites=(), reason=f"{entry_path} can't be read")
    try:
        parse(data)
    except SourceError as error:
        where = f" at line {error.line}" if error.line is not None else ""
        return Analysis(sites=(), reason=f"{entry_path} is not Python as it stands{where}: {error}")
    entry = find_entry_point(entry_path, data)
    if entry is not None and entry.kind is EntryPointKind.PROVIDER and entry.providers is not None:
        return _provider(files, entry_path, entry.providers.prefix)
    return _script(files, entry_path, arguments, dict(environment or {}))


def find_sites(
    files: Files,
    entry_path: str,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> tuple[Site, ...]:
    """Sites of the program at `entry_path` when run with `arguments`, best first.

    Nothing where the file is absent or can't be parsed; `why_no_site` tells why.
    """
    return analyse(files, entry_path, arguments, environment).sites


def why_no_site(
    files: Files,
    entry_path: str,
    arguments: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
) -> str:
    """Why no site of the program is editable, and where to look, for the user; empty where one is."""
    return analyse(files, entry_path, arguments, environment).reason


# Provider files


def _provider(files: Files, entry_path: str, prefix: str) -> Analysis:
    name = f"{prefix}_input_provider"
    run = Run(files, entry_path)
    try:
        module = run.main()
    except OutOfSteps:
        module = None
    value = module.cells.get(name) if module is not None else None
    if not isinstance(value, Function):
        return Analysis(sites=(), reason=f"`{name}` is not defined; add it, with a default such as batch_size=32")
    default = value.defaults.get("batch_size")
    if default is None:
        return Analysis(sites=(), reason=f"`batch_size` has no default in `{name}`; add one, such as 32")
    direct = sources_of(default)
    if isinstance(default, Known) and len(direct) == 1 and not direct[0].via and not direct[0].notes:
        literal = direct[0].literal
        run.library.roles[literal.key] = (
            SiteKind.PROVIDER_DEFAULT,
            "batch_size",
            f"default of batch_size in {name}",
        )
    feed = Feed(call=name, path=run.entry_path, line=0, batch=default, strength=0, function="", trained=True)
    sites = _sites_of(run, [feed])
    if not sites:
        shown = f"`{label_of(default)}`" if label_of(default) else "what it is"
        return Analysis(
            sites=(), reason=f"the default of `batch_size` in `{name}` can't be followed to a number: {shown}"
        )
    return Analysis(sites=_ranked(sites), reason="" if any(site.editable for site in sites) else sites[0].reason)


# Training scripts


def _script(files: Files, entry_path: str, arguments: tuple[str, ...], environment: dict[str, str]) -> Analysis:
    best: Run | None = None
    for run in _runs(files, entry_path, arguments, environment):
        if best is None or _worth(run) > _worth(best):
            best = run
        if _worth(best) >= _ENOUGH:
            break
    assert best is not None
    sites = _sites_of(best, best.feeds)
    answered = any(not site.evaluation and site.kind is not SiteKind.RUN_CONFIGURATION for site in sites)
    sites += _by_name(best, {(site.path, site.line, site.start) for site in sites})
    if not answered and (best.library.configured or any(isinstance(feed.batch, Unknown) for feed in best.feeds)):
        sites += _by_key(best)
    ranked = _ranked(sites)
    editable = any(site.editable and site.resolved and not site.evaluation for site in ranked)
    return Analysis(sites=ranked, reason="" if editable else _why(best, ranked))


_ENOUGH = 3


def _worth(run: Run) -> int:
    """How well a way through the program answers: a trained loader with a number is best."""
    found = 0
    for feed in run.feeds:
        if feed.strength < WHOLE_DATA and sources_of(feed.batch) and not _is_evaluation(feed, True):
            found = max(found, 3 if feed.trained else 2 if feed.strength == 0 else 1)
    return found


def _runs(files: Files, entry_path: str, arguments: tuple[str, ...], environment: dict[str, str]) -> Iterable[Run]:
    """The program as it is run; with each subcommand; with options unknown; and with what nothing was seen to call."""
    first = Run(files, entry_path, arguments, environment)
    _follow(first)
    yield first
    for alternative in range(1, min(first.alternatives, MAX_ALTERNATIVES)):
        other = Run(files, entry_path, arguments, environment, max_steps=MAX_STEPS // 2)
        other.alternative = alternative
        _follow(other)
        yield other
    lenient = Run(files, entry_path, arguments, environment, lenient=True, max_steps=MAX_STEPS // 2)
    module = _follow(lenient)
    yield lenient
    if any(feed.strength <= 1 and not _is_evaluation(feed, True) for feed in (*first.feeds, *lenient.feeds)):
        # What feeds the model is known, though not by which number: what is not called would only distract.
        return
    if module is not None:
        _follow_rest(lenient, module)
    yield lenient


def _follow(run: Run) -> Module | None:
    try:
        return run.main()
    except OutOfSteps:
        return None


def _follow_rest(run: Run, entry: Module) -> None:
    """Follow the functions that were never called: a framework, or code that is not understood, calls them."""
    modules = [entry, *run.modules.loaded.values()]
    try:
        for module in modules:
            for value in list(module.cells.values()):
                if isinstance(value, Function) and id(value.node) not in run.entered:
                    if value.scope.module is module:
                        run.call_root(value)
                elif isinstance(value, Class) and value.module is module:
                    _follow_methods(run, value)
    except OutOfSteps:
        return


def _follow_methods(run: Run, cls: Class) -> None:
    receiver: Value | None = cls.instances[-1] if cls.instances else None
    for member in list(cls.cells.values()):
        if not isinstance(member, Function) or id(member.node) in run.entered or member.name.startswith("__"):
            continue
        if receiver is None:
            receiver = run.make(cls)
        run.call_root(bind(member, receiver, cls))


# From feeds to sites


@dataclass(slots=True)
class _Found:
    """A literal, with the best feed that it was followed from."""

    source: Source
    feed: Feed
    order: tuple[int, ...]
    evaluation: bool
    overridden: str = ""
    several: bool = False


def _sites_of(run: Run, feeds: list[Feed]) -> list[Site]:
    any_trained = any(feed.trained and not feed.evaluation for feed in feeds)
    found: dict[tuple[str, int, int], _Found] = {}
    for feed in feeds:
        if feed.strength >= WHOLE_DATA:
            continue
        evaluation = _is_evaluation(feed, any_trained)
        category = 2 if evaluation else 0 if feed.trained else 1
        for position, (source, overridden) in enumerate(_all_sources(feed.batch)):
            if not (feed.trained or feed.strength <= 1 or speaks_of_batch(source)):
                continue
            order = (
                category,
                bool(overridden),
                min(feed.strength, 2),
                qualifiers(source.via[0]) if feed.strength >= 2 and source.via else 0,
                feed.strength,
                not source.linear,
                feed.order,
                position,
            )
            key = source.literal.key
            several = len({s.literal.key for s, o in _all_sources(feed.batch) if not o}) > 1
            made = _Found(source, feed, order, evaluation, overridden, several)
            held = found.get(key)
            if held is None or order < held.order:
                made.evaluation = evaluation and (held is None or held.evaluation)
                found[key] = made
            else:
                held.evaluation = held.evaluation and evaluation
    sites: list[Site] = []
    for item in sorted(found.values(), key=lambda item: item.order):
        site = _site(run, item)
        if site is not None:
            sites.append(site)
    return sites


def _all_sources(batch: Value) -> list[tuple[Source, str]]:
    """Sources of a batch size, then those of the defaults that the command line overrides."""
    direct = list(sources_of(batch))
    own = [source for source in direct if source.via and names_batch_size(source.via[0])]
    if own:
        direct = [s for s in direct if s in own or not s.via or not s.notes or isinstance(s.literal, ArgumentLiteral)]
    out = [(source, "") for source in direct]
    for source in direct:
        literal = source.literal
        if isinstance(literal, ArgumentLiteral) and literal.overridden is not None:
            for below in sources_of(literal.overridden):
                via = (*below.via, *source.via)
                merged = replace(below, via=via, multiplier=source.multiplier, divisor=source.divisor)
                out.append((merged, f"{literal.option} {literal.text}"))
    return out


def _is_evaluation(feed: Feed, any_trained: bool) -> bool:
    if feed.trained:
        return False
    if feed.evaluation is not None:
        return feed.evaluation
    told = [feed.name, feed.function, feed.data]
    if any(names_training(text) for text in told[:1] if text):
        return False
    if any(names_evaluation(text) for text in told if text):
        return True
    return any_trained and feed.iterated and feed.strength <= 1


_MAY_BE_NONE = {
    SiteKind.ARGPARSE, SiteKind.CLICK, SiteKind.TYPER, SiteKind.ABSL, SiteKind.TYRO, SiteKind.DATACLASS_FIELD,
    SiteKind.FUNCTION_DEFAULT, SiteKind.CONSTANT, SiteKind.ATTRIBUTE, SiteKind.CLASS_ATTRIBUTE, SiteKind.DICT_ENTRY,
}  # fmt: skip
"""Where None stands for a batch size to be found automatically."""


def _site(run: Run, found: _Found) -> Site | None:
    literal = found.source.literal
    if isinstance(literal, ArgumentLiteral):
        return _argument_site(run, found, literal)
    if isinstance(literal, FileLiteral):
        place = Place(
            line=literal.line,
            column=literal.column,
            start=literal.start,
            end=literal.end,
            text=literal.text,
            value=literal.value,
            kind=literal.kind,
            name=literal.name,
            description=f"{literal.name} in {_shown(run, literal.path)}",
            problem="",
        )
        path = literal.path
    else:
        assert isinstance(literal, PythonLiteral)
        if not literal.path:
            return None
        located = find_place(literal.syntax, literal.node, run.library.roles.get(literal.key))
        if located is None:
            return None
        place, path = located, run.modules.native_path(literal.path)
    if place.value == 0 and place.text != "None":
        return None
    if place.text == "None" and (
        found.feed.strength or place.kind not in _MAY_BE_NONE or not names_batch_size(place.name)
    ):
        return None
    return _make_site(run, found, place, path)


def _make_site(run: Run, found: _Found, place: Place, path: str) -> Site:
    source = found.source
    problem = place.problem
    if not problem and not source.linear:
        problem = "the batch size does not simply follow it; change the expression by hand"
    if not problem and place.text == "None":
        problem = "None lets the program choose; write a number there"
    notes = list(dict.fromkeys(source.notes))
    if place.value == -1:
        notes.append("-1 lets the program choose")
    if found.overridden:
        problem = f"overridden by {found.overridden} of the run configuration; change it there"
    reader = _reader(found.feed)
    described = place.description
    if place.kind is SiteKind.DATALOADER and found.feed.name:
        described = f"{place.name} of {reader}"
    elif place.kind is not SiteKind.PROVIDER_DEFAULT and reader and not described.endswith(reader):
        described = f"{described}, which {reader} reads"
    if found.several and place.kind is not SiteKind.EXPRESSION:
        notes.append("one of several places that it may come from")
    seen = found.feed.trained or found.feed.strength <= 1
    if not seen:
        notes.append("no training on it was seen")
    reason = "; ".join(
        [described, *notes, *(["for evaluation only"] if found.evaluation else []), *([problem] if problem else [])]
    )
    return Site(
        path=path,
        line=place.line,
        column=place.column + 1,
        start=place.start,
        end=place.end,
        text=place.text,
        value=place.value,
        kind=place.kind,
        name=place.name,
        editable=not problem,
        reason=reason,
        evaluation=found.evaluation,
        rank=0,
        multiplier=source.multiplier if source.linear else 1,
        divisor=source.divisor if source.linear else 1,
        maximum=source.maximum,
        resolved=seen,
    )


def _argument_site(run: Run, found: _Found, literal: ArgumentLiteral) -> Site:
    column, start, text_at = 0, 0, literal.line
    data = run.files.read(run.modules.native_path(literal.path))
    if data is not None:
        syntax = parse(data)
        line = syntax.source.lines[min(literal.line, len(syntax.source.lines)) - 1]
        column = len(line) - len(line.lstrip())
        start = syntax.source.byte_offset(literal.line, column)
    return Site(
        path=run.modules.native_path(literal.path),
        line=text_at,
        column=column + 1,
        start=start,
        end=start,
        text=literal.text,
        value=literal.value,
        kind=SiteKind.RUN_CONFIGURATION,
        name=literal.option,
        editable=False,
        reason=(
            f"the run configuration gives {literal.option} {literal.text}, which {_reader(found.feed)} reads; "
            "change it there"
        ),
        evaluation=found.evaluation,
        rank=0,
        multiplier=found.source.multiplier,
        divisor=found.source.divisor,
        maximum=found.source.maximum,
    )


def _reader(feed: Feed) -> str:
    call = re.sub(r"^(?:torch\.utils\.data\.|builtins\.)", "", feed.call)
    if len(call) > 40:
        call = call.rsplit(".", 1)[-1]
    if feed.name:
        return call if feed.name in (call, *TRAINING_BATCH) else f"{feed.name}'s {call}"
    if feed.line:
        return f"the {call} at line {feed.line}" if call.isidentifier() else f"{call} at line {feed.line}"
    return call


def _shown(run: Run, path: str) -> str:
    root = run.files.root.replace("\\", "/").rstrip("/") + "/"
    return path.replace("\\", "/").removeprefix(root)


def _by_name(run: Run, known: set[tuple[str, int, int]]) -> list[Site]:
    """Literals whose name speaks of a batch size, in the files that the program reaches."""
    unread = {label.rsplit(".", 1)[-1] for feed in run.feeds for label in [label_of(feed.batch)] if label}
    entry = run.modules.syntax(run.entry_path)
    modules = [(run.entry_path, entry)] if entry is not None else []
    modules += [(module.path, module.syntax) for module in run.modules.loaded.values() if module.path != run.entry_path]
    sites: list[tuple[bool, bool, int, Site]] = []
    for path, syntax in modules:
        native = run.modules.native_path(path)
        for place in named_literals(syntax):
            if (native, place.line, place.start) in known:
                continue
            known.add((native, place.line, place.start))
            evaluation = names_evaluation(place.name)
            reason = f"{place.description}: its name speaks of a batch size, but it was not seen to feed the model"
            site = Site(
                path=native,
                line=place.line,
                column=place.column + 1,
                start=place.start,
                end=place.end,
                text=place.text,
                value=place.value,
                kind=place.kind,
                name=place.name,
                editable=not place.problem,
                reason=reason + ("; for evaluation only" if evaluation else ""),
                evaluation=evaluation,
                rank=0,
                resolved=False,
            )
            wanted = place.name.lstrip("-").replace("-", "_") in unread
            sites.append((evaluation, not wanted, len(sites), site))
    return [site for *_, site in sorted(sites, key=lambda item: item[:3])][:MAX_NAME_ONLY]


def _by_key(run: Run) -> list[Site]:
    """Numbers of the project's configuration files whose key speaks of a batch size."""
    found: list[tuple[bool, int, str, int, Site]] = []
    paths = [path for path in run.files.paths(CONFIG_SUFFIXES) if not path.rsplit("/", 1)[-1].startswith(".")]
    for path in sorted(paths, key=lambda path: (path.count("/"), path))[:MAX_CONFIG_FILES]:
        kind, data = kind_of(path), run.files.read(path)
        if kind is None or data is None or (b"atch" not in data and b"bs" not in data):
            continue
        try:
            tree = read_config(data, kind)
        except ConfigError:
            continue
        for keys, scalar in integers(tree):
            position = scalar.position
            if position is None or not names_batch_size(keys[-1]) or int(scalar.value) < 1:
                continue
            name = ".".join(keys)
            evaluation = any(names_evaluation(key) for key in keys)
            reason = (
                f"{name} in {_shown(run, path)}: its name speaks of a batch size, but the file was not seen to be read"
            )
            site = Site(
                path=path,
                line=position.line,
                column=position.column + 1,
                start=position.start,
                end=position.end,
                text=position.text,
                value=int(scalar.value),
                kind=kind,
                name=name,
                editable=True,
                reason=reason + ("; for evaluation only" if evaluation else ""),
                evaluation=evaluation,
                rank=0,
                resolved=False,
            )
            found.append((evaluation, path.count("/"), path, position.start, site))
    return [site for *_, site in sorted(found, key=lambda item: item[:4])][:MAX_NAME_ONLY]


def _ranked(sites: list[Site]) -> tuple[Site, ...]:
    """Sites in order: resolved before named, training before evaluation."""
    ordered = sorted(
        sites, key=lambda site: (site.evaluation, not site.resolved) if site.resolved else (site.evaluation, True)
    )
    return tuple(replace(site, rank=rank) for rank, site in enumerate(ordered))


def _why(run: Run, sites: tuple[Site, ...]) -> str:
    """Why nothing is editable, for the user."""
    first = next((site for site in sites if site.resolved and not site.evaluation), None)
    if first is not None:
        return first.reason
    if run.library.problems:
        return run.library.problems[0]
    unresolved = [feed for feed in run.feeds if not _is_evaluation(feed, True) and feed.strength <= 1]
    for feed in unresolved:
        label = label_of(feed.batch)
        if isinstance(feed.batch, Unknown) and label:
            return f"{_reader(feed)} reads `{label}`, which can't be followed to a number in the project's files"
        if isinstance(feed.batch, Known) and isinstance(feed.batch.value, int):
            return (
                f"{_reader(feed)} is given no batch size, so its own default of {feed.batch.value} counts; "
                f"add batch_size={feed.batch.value} to it"
            )
    return (
        "no data loader and no drawn batch was found: the model seems to be fed its whole data at once, "
        "so there is no batch size to change"
    )
