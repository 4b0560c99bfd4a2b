"""Split a script into words, operators and line ends, with quotes and expansions inside words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from syncline.cluster.machines.shell.syntax import (
    Arithmetic,
    HereDocument,
    Literal,
    Part,
    Script,
    ShellError,
    Substitution,
    Variable,
    Word,
)

MAX_TEXT = 256 * 1024
"""Longest script, as long as an argument of a container."""
MAX_NESTING = 50

OPERATORS = (";;", "&&", "||", "<<<", "<<-", "<<", ">>", "&>", ">&", "<&", ";", "|", "&", "(", ")", "<", ">")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL = "?#$@*!-0123456789"
_BRACED = re.compile(r"(#?)([A-Za-z_][A-Za-z0-9_]*|[?#$@*0-9])(:?[-+=?]|%%|##|%|#)?")
_END_OF_WORD = set(" \t\n;|&()<>")


@dataclass(frozen=True, slots=True)
class Token:
    """``operator`` is set for operators (``\\n`` for a line end); otherwise it is a word."""

    operator: str = ""
    word: Word | None = None


class Tokens:
    """Reads tokens on demand. ``parse`` converts the text in ``$(…)`` to a script."""

    def __init__(self, text: str, parse: Callable[[str, int], Script], depth: int = 0) -> None:
        if len(text) > MAX_TEXT:
            raise ShellError(f"the script has {len(text)} characters; at most {MAX_TEXT} are read")
        if depth > MAX_NESTING:
            raise ShellError(f"the script is nested deeper than {MAX_NESTING}")
        self._text = text
        self._at = 0
        self._parse = parse
        self._depth = depth
        self._ahead: list[Token] = []
        self._heredocs: list[tuple[str, bool, bool, list[Part]]] = []

    # -- tokens ------------------------------------------------------------------------------------------------------

    def peek(self) -> Token | None:
        if not self._ahead:
            token = self._read()
            if token is None:
                return None
            self._ahead.append(token)
        return self._ahead[0]

    def take(self) -> Token | None:
        token = self.peek()
        if token is not None:
            self._ahead.pop(0)
        return token

    def _read(self) -> Token | None:
        self._skip_blank()
        if self._at >= len(self._text):
            return None
        if self._text[self._at] == "\n":
            self._at += 1
            self._read_heredocs()
            return Token("\n")
        number = re.compile(r"([012])(>>|>&|>|<)").match(self._text, self._at)
        if number and (self._at == 0 or self._text[self._at - 1] in " \t\n;|&"):
            self._at = number.end()
            return Token(number.group(1) + number.group(2))
        for operator in OPERATORS:
            if self._text.startswith(operator, self._at):
                self._at += len(operator)
                return Token(operator)
        return Token(word=self._word())

    def _skip_blank(self) -> None:
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t":
                self._at += 1
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif char == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return

    # -- words -------------------------------------------------------------------------------------------------------

    def _word(self) -> Word:
        parts: list[Part] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in _END_OF_WORD:
                break
            if char == "'":
                parts.append(Literal(self._until("'"), quoted=True))
            elif char == '"':
                self._at += 1
                parts += self._double_quoted()
            elif char == "\\":
                self._escaped(parts)
            elif char == "$":
                parts.append(self._dollar(quoted=False))
            elif char == "`":
                parts.append(Substitution(self._parse(self._until("`"), self._depth + 1), quoted=False))
            else:
                parts.append(Literal(char))
                self._at += 1
        return Word(_joined(parts))

    def _escaped(self, parts: list[Part]) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if following != "\n":
            parts.append(Literal(following, quoted=True))

    def _until(self, quote: str) -> str:
        end = self._text.find(quote, self._at + 1)
        if end < 0:
            raise ShellError(f"a {quote} is not closed")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        return text

    def _double_quoted(self) -> list[Part]:
        parts: list[Part] = [Literal("", quoted=True)]
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return parts
            parts += self._quoted_piece(char)
        raise ShellError('a " is not closed')

    def _quoted_piece(self, char: str) -> list[Part]:
        """Read one character or expansion in double quotes or a here-document."""
        if char == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            self._at += 2
            if following == "\n":
                return []
            return [Literal(following if following in '$`"\\' else "\\" + following, quoted=True)]
        if char == "$":
            return [self._dollar(quoted=True)]
        if char == "`":
            return [Substitution(self._parse(self._until("`"), self._depth + 1), quoted=True)]
        self._at += 1
        return [Literal(char, quoted=True)]

    def _dollar(self, *, quoted: bool) -> Part:
        rest = self._text[self._at + 1 :]
        if rest.startswith("(("):
            end = self._closing(self._at + 1)
            text = self._text[self._at + 3 : end - 1]
            self._at = end + 1
            return Arithmetic(text)
        if rest.startswith("("):
            end = self._closing(self._at + 1)
            script = self._parse(self._text[self._at + 2 : end], self._depth + 1)
            self._at = end + 1
            return Substitution(script, quoted)
        if rest.startswith("{"):
            return self._braced(quoted)
        name = _NAME.match(rest)
        if name:
            self._at += 1 + name.end()
            return Variable(name.group(), quoted)
        if rest[:1] and rest[0] in _SPECIAL:
            self._at += 2
            return Variable(rest[0], quoted)
        self._at += 1
        return Literal("$", quoted)

    def _closing(self, start: int) -> int:
        """Return the position of the parenthesis that closes the one at ``start``, ignoring quoted ones."""
        depth, at, quote = 0, start, ""
        while at < len(self._text):
            char = self._text[at]
            if char == "\\" and quote != "'":
                at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
                if depth == 0:
                    return at
            at += 1
        raise ShellError("a ( is not closed")

    def _braced(self, quoted: bool) -> Variable:
        found = _BRACED.match(self._text, self._at + 2)
        end = self._brace_end()
        if not found or found.end() > end or (found.end() != end and not found.group(3)):
            raise ShellError(f"{self._text[self._at : end + 1]} is not an expansion this shell knows")
        operator = found.group(3) or ""
        operand = None
        if operator:
            inner = self._text[found.end() : end]
            operand = Tokens(inner, self._parse, self._depth + 1).whole_word(quoted)
        self._at = end + 1
        return Variable(found.group(2), quoted, "#len" if found.group(1) else operator, operand)

    def _brace_end(self) -> int:
        depth = 0
        for at in range(self._at + 1, len(self._text)):
            depth += {"{": 1, "}": -1}.get(self._text[at], 0)
            if depth == 0:
                return at
        raise ShellError("a ${ is not closed")

    def whole_word(self, quoted: bool) -> Word:
        """Read the whole text as one word, the operand of an expansion."""
        parts: list[Part] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"' and not quoted:
                self._at += 1
                parts += self._double_quoted()
            elif char == "'" and not quoted:
                parts.append(Literal(self._until("'"), quoted=True))
            else:
                parts += self._quoted_piece(char)
        return Word(_joined(parts))

    # -- here-documents ----------------------------------------------------------------------------------------------

    def heredoc(self, *, strip_tabs: bool) -> Word:
        """Read the delimiter; the text follows after the line, and is added then."""
        self._skip_blank()
        word = self._word()
        delimiter = word.constant
        if not delimiter:
            raise ShellError("a here-document needs a plain delimiter")
        quoted = any(isinstance(part, Literal) and part.quoted for part in word.parts)
        parts: list[Part] = []
        self._heredocs.append((delimiter, quoted, strip_tabs, parts))
        return Word((HereDocument(parts),))

    def _read_heredocs(self) -> None:
        for delimiter, quoted, strip_tabs, parts in self._heredocs:
            lines = []
            while True:
                if self._at >= len(self._text):
                    raise ShellError(f"the here-document does not end with {delimiter}")
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                line = line.lstrip("\t") if strip_tabs else line
                if line == delimiter:
                    break
                lines.append(line + "\n")
            body = "".join(lines)
            parts += [Literal(body, quoted=True)] if quoted else Tokens(body, self._parse, self._depth + 1).document()
        self._heredocs.clear()
        self._at = min(self._at, len(self._text))

    def document(self) -> list[Part]:
        """Return the parts of a here-document: expansions apply, quotes do not."""
        parts: list[Part] = []
        while self._at < len(self._text):
            parts += self._quoted_piece(self._text[self._at])
        return list(_joined(parts))


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    """Merge adjacent literals with the same quoting."""
    found: list[Part] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, Literal) and isinstance(last, Literal) and part.quoted == last.quoted:
            found[-1] = Literal(last.text + part.text, part.quoted)
        else:
            found.append(part)
    return tuple(found)
