"""Parse text to :class:`~syncline.cluster.machines.shell.syntax.Script`; raise ShellError for unsupported syntax."""

from __future__ import annotations

import re

from syncline.cluster.machines.shell.lexer import Token, Tokens
from syncline.cluster.machines.shell.syntax import (
    AndOr,
    Case,
    Command,
    For,
    Group,
    If,
    Literal,
    Loop,
    Pipeline,
    Redirect,
    Script,
    ShellError,
    Simple,
    Word,
)

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_REDIRECTS = {"<", ">", ">>", "2>", "2>>", "1>", "1>>", "2>&", "1>&", ">&", "&>", "<<", "<<-", "<<<", "0<"}
_RESERVED = {"then", "else", "elif", "fi", "do", "done", "esac", "}", "in"}
_UNKNOWN = {"function", "select", "coproc", "time"}


def parse(text: str, depth: int = 0) -> Script:
    """Return the syntax tree of a script."""
    parser = _Parser(Tokens(text, parse, depth))
    script = parser.script(set())
    if parser.tokens.peek() is not None:
        raise ShellError(f"{parser.shown()} is not expected here")
    return script


class _Parser:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    # -- looking -----------------------------------------------------------------------------------------------------

    def shown(self) -> str:
        token = self.tokens.peek()
        if token is None:
            return "the end of the script"
        if token.word is None:
            return "the end of a line" if token.operator == "\n" else repr(token.operator)
        return repr(token.word.constant or "a word")

    def _operator(self) -> str:
        token = self.tokens.peek()
        return token.operator if token is not None else ""

    def _bare(self) -> str:
        token = self.tokens.peek()
        return (token.word.bare or "") if token is not None and token.word is not None else ""

    def _expect(self, word: str) -> None:
        if self._bare() != word and self._operator() != word:
            raise ShellError(f"{word!r} is expected before {self.shown()}")
        self.tokens.take()

    def _skip_lines(self) -> None:
        while self._operator() in ("\n", ";"):
            self.tokens.take()

    # -- lists -------------------------------------------------------------------------------------------------------

    def script(self, ends: set[str]) -> Script:
        """Read commands up to a reserved word or operator in ``ends``."""
        lists = []
        self._skip_lines()
        while self.tokens.peek() is not None and self._bare() not in ends and self._operator() not in ends:
            lists.append(self._and_or())
            if self._operator() == "&":
                raise ShellError("background commands (&) are not known to this shell")
            if self._operator() not in ("\n", ";") and self.tokens.peek() is not None:
                break
            self._skip_lines()
        return Script(tuple(lists))

    def _and_or(self) -> AndOr:
        first = self._pipeline()
        rest = []
        while self._operator() in ("&&", "||"):
            operator = self._operator()
            self.tokens.take()
            self._skip_newlines()
            rest.append((operator, self._pipeline()))
        return AndOr(first, tuple(rest))

    def _skip_newlines(self) -> None:
        while self._operator() == "\n":
            self.tokens.take()

    def _pipeline(self) -> Pipeline:
        negated = self._bare() == "!"
        if negated:
            self.tokens.take()
        commands = [self._command()]
        while self._operator() == "|":
            self.tokens.take()
            self._skip_newlines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    # -- commands ----------------------------------------------------------------------------------------------------

    def _command(self) -> Command:
        word = self._bare()
        if word in _UNKNOWN:
            raise ShellError(f"{word!r} is not known to this shell")
        if word in _RESERVED:
            raise ShellError(f"{word!r} is not expected here")
        if self._operator() == "(":
            self.tokens.take()
            script = self.script({")"})
            self._expect(")")
            return Group(script, True, self._redirects())
        match word:
            case "if":
                return self._if()
            case "while" | "until":
                return self._loop(word)
            case "for":
                return self._for()
            case "case":
                return self._case()
            case "{":
                self.tokens.take()
                script = self.script({"}"})
                self._expect("}")
                return Group(script, False, self._redirects())
            case _:
                return self._simple()

    def _if(self) -> If:
        branches = []
        otherwise = None
        word = "if"
        while word in ("if", "elif"):
            self._expect(word)
            condition = self.script({"then"})
            self._expect("then")
            branches.append((condition, self.script({"elif", "else", "fi"})))
            word = self._bare()
        if word == "else":
            self.tokens.take()
            otherwise = self.script({"fi"})
        self._expect("fi")
        return If(tuple(branches), otherwise, self._redirects())

    def _body(self) -> Script:
        self._expect("do")
        body = self.script({"done"})
        self._expect("done")
        return body

    def _loop(self, word: str) -> Loop:
        self.tokens.take()
        condition = self.script({"do"})
        return Loop(condition, self._body(), word == "until", self._redirects())

    def _for(self) -> For:
        self.tokens.take()
        name = self._bare()
        if not name.isidentifier():
            raise ShellError("only 'for NAME in WORDS' is known to this shell")
        self.tokens.take()
        words = []
        self._skip_newlines()
        if self._bare() == "in":
            self.tokens.take()
            while (token := self.tokens.peek()) is not None and token.word is not None:
                words.append(token.word)
                self.tokens.take()
        self._skip_lines()
        return For(name, tuple(words), self._body(), self._redirects())

    def _case(self) -> Case:
        self.tokens.take()
        subject = self._word()
        self._skip_newlines()
        self._expect("in")
        branches = []
        self._skip_lines()
        while self._bare() != "esac":
            if self._operator() == "(":
                self.tokens.take()
            patterns = [self._word()]
            while self._operator() == "|":
                self.tokens.take()
                patterns.append(self._word())
            self._expect(")")
            branches.append((tuple(patterns), self.script({";;", "esac"})))
            if self._operator() == ";;":
                self.tokens.take()
            self._skip_lines()
        self._expect("esac")
        return Case(subject, tuple(branches), self._redirects())

    def _word(self) -> Word:
        token = self.tokens.peek()
        if token is None or token.word is None:
            raise ShellError(f"a word is expected before {self.shown()}")
        self.tokens.take()
        return token.word

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while (token := self.tokens.peek()) is not None:
            if token.word is None:
                if token.operator not in _REDIRECTS:
                    break
                redirects.append(self._redirect(token))
                continue
            self.tokens.take()
            assignment = None if words else _assignment(token.word)
            if assignment is not None:
                assignments.append(assignment)
            else:
                words.append(token.word)
        if not assignments and not words and not redirects:
            raise ShellError(f"a command is expected before {self.shown()}")
        if self._operator() == "(":
            raise ShellError("functions are not known to this shell")
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    def _redirects(self) -> tuple[Redirect, ...]:
        found = []
        while (token := self.tokens.peek()) is not None and token.operator in _REDIRECTS:
            found.append(self._redirect(token))
        return tuple(found)

    def _redirect(self, token: Token) -> Redirect:
        self.tokens.take()
        operator = token.operator
        if operator in ("<<", "<<-"):
            return Redirect("<<", self.tokens.heredoc(strip_tabs=operator == "<<-"))
        target = self._word()
        if operator in (">&", "1>&", "2>&"):
            if target.constant not in ("1", "2"):
                raise ShellError(f"{operator}{target.constant} is not known to this shell")
            return Redirect("2>&1" if operator == "2>&" and target.constant == "1" else "1>&2", target)
        return Redirect({"1>": ">", "1>>": ">>", "0<": "<"}.get(operator, operator), target)


def _assignment(word: Word) -> tuple[str, Word] | None:
    first = word.parts[0] if word.parts else None
    if not isinstance(first, Literal) or first.quoted:
        return None
    found = _ASSIGNMENT.match(first.text)
    if not found:
        return None
    rest = first.text[found.end() :]
    parts = word.parts[1:] if not rest else (Literal(rest), *word.parts[1:])
    return found.group(1), Word(parts)
