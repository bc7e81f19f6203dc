"""A topology file's tags, and where they are not what NCCL's reader takes.

NCCL reads byte by byte and stops at the first thing that it does not expect. This reader goes on
where it can tell what was meant, so that one run tells all.
"""

import re
from bisect import bisect_right
from contextlib import suppress

from kopeck.topology import rules
from kopeck.topology.elements import Attribute, Element
from kopeck.topology.rules import Finding, Rule

MAX_BYTES = 253
"""Of a name and of a value; NCCL 2.26 takes one more."""

_MARK = "\xef\xbb\xbf"
_END_OF_WORD = re.compile(r"[ >/\n\r=]")
_END_OF_NAME = re.compile(r"[ >/\n\r=\t]")
_END_OF_UNQUOTED = re.compile(r"[ >/\n\r\t]")


class _Stop(Exception):  # noqa: N818  no error: nothing more can be told
    """What follows has no structure to go on with."""


def read(content: bytes) -> tuple[list[Element], list[Finding]]:
    """The elements at the top, and what is wrong with the text; bytes stand for characters."""
    reader = _Reader(content.decode("latin-1"))
    with suppress(_Stop):
        reader.read()
    return reader.top, reader.findings


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.top: list[Element] = []
        self.findings: list[Finding] = []
        self._open: list[Element] = []
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def read(self) -> None:
        if "\0" in self.text:
            self._tell(rules.NUL, "a zero byte", "remove it", self.text.index("\0"))
        if self.text.startswith(_MARK):
            self._tell(rules.BYTE_ORDER_MARK, "a byte order mark", "save the file without it")
            self.position = len(_MARK)
        while self._skip_to_tag():
            self._read_tag()
        if self._open:
            last = self._open[-1]
            wrong = f"{last.name} is not closed"
            self._note(last.line, rules.UNTERMINATED, wrong, f"write </{last.name}>")

    def _skip_to_tag(self) -> bool:
        """Past blanks and text. False at the end of the file."""
        start = self.position
        found = self.text.find("<", start)
        self.position = len(self.text) if found < 0 else found
        between = self.text[start : self.position]
        if "\t" in between:
            at = start + between.index("\t")
            self._tell(rules.TAB, "a tab between tags", "indent by blanks", at)
        if words := re.search(r"[^ \n\r\t]", between):
            at = start + words.start()
            self._tell(rules.TEXT, "text between tags", "remove it, or make it a comment", at)
        return found >= 0

    def _read_tag(self) -> None:
        for start, read in (
            ("<!--", self._skip_comment),
            ("<?", self._skip_prolog),
            ("<!", self._skip_doctype),
            ("</", self._read_closing_tag),
        ):
            if self.text.startswith(start, self.position):
                return read()
        return self._read_element()

    def _skip_comment(self) -> None:
        word = self._word(self.position + 1, _END_OF_WORD)
        if self.text.startswith("=", self.position + 1 + len(word)):
            wrong = "the first word of a comment holds ="
            self._tell(rules.COMMENT_WORD, wrong, "put a blank behind <!--")
        if len(word) > MAX_BYTES:
            wrong = f"the first word of a comment has {len(word)} bytes"
            self._tell(rules.COMMENT_WORD, wrong, "put a blank behind <!--")
        self._skip_past("-->", self.position + len("<!--"), "write --> behind the comment")

    def _skip_prolog(self) -> None:
        self._tell(rules.PROLOG, "a prolog", "begin with <system>")
        self._skip_past(">", self.position, "write ?>")

    def _skip_doctype(self) -> None:
        self._tell(rules.DOCTYPE, "a declaration", "remove it")
        self._skip_past(">", self.position, "write >")

    def _read_closing_tag(self) -> None:
        start = self.position
        name = self._word(start + 2, _END_OF_NAME)
        end = start + 2 + len(name)
        if not self.text.startswith(">", end):
            wrong = f"the closing tag of {name or 'nothing'} goes on behind its name"
            self._tell(rules.CLOSING_TAG, wrong, f"write </{name}>")
        if not self._open or self._open[-1].name != name:
            expected = f"write </{self._open[-1].name}>" if self._open else "remove it"
            self._tell(rules.MISMATCH, f"</{name}> closes what is not open", expected)
            raise _Stop
        self._skip_past(">", end, "write >")
        self._open.pop()

    def _read_element(self) -> None:
        start = self.position
        name = self._word(start + 1, _END_OF_NAME)
        element = Element(name, self._line(start))
        self.position = start + 1 + len(name)
        self._check_name(name, start)
        if self._peek() == "=":
            self._tell(rules.NAME, f"{name}= where a tag's name stands", "write the name", start)
            raise _Stop
        is_single = self._read_attributes(element)
        (self._open[-1].children if self._open else self.top).append(element)
        if not is_single:
            self._open.append(element)

    def _read_attributes(self, element: Element) -> bool:
        """To the end of the tag. True where it ends with />."""
        is_separated = True
        while True:
            match self._peek():
                case ">":
                    self.position += 1
                    return False
                case "/":
                    self._read_slash()
                    return True
                case " ":
                    self._read_blank(element)
                    is_separated = True
                case "\t":
                    self._tell(rules.TAB, f"a tab inside {element.name}", "write a blank")
                    self.position += 1
                    is_separated = True
                case "\n" | "\r":
                    wrong = f"a line break inside {element.name}"
                    self._tell(rules.LINE_BREAK, wrong, "write the tag on one line")
                    self._skip_blanks()
                    is_separated = True
                case _:
                    if not is_separated:
                        wrong = f"no blank behind a value of {element.name}"
                        self._tell(rules.NO_BLANK, wrong, "put one blank before each attribute")
                    element.attributes.append(self._read_attribute())
                    element.slots += 1
                    is_separated = False

    def _read_slash(self) -> None:
        if not self.text.startswith("/>", self.position):
            self._tell(rules.SLASH, "something between / and >", "write />")
        self._skip_past(">", self.position, "write />")

    def _read_blank(self, element: Element) -> None:
        self.position += 1
        if self._peek() in " >/":
            wrong = f"a blank too many in {element.name}"
            instead = "put one before each attribute and none before > or />"
            self._tell(rules.BLANK, wrong, instead, self.position - 1)
            element.slots += 1

    def _skip_blanks(self) -> None:
        while self._peek() in " \n\r\t":
            self.position += 1

    def _read_attribute(self) -> Attribute:
        start = self.position
        name = self._word(start, _END_OF_NAME)
        self.position += len(name)
        if name or self._peek() != "=":
            self._check_name(name, start)
        if self._peek() != "=":
            self._tell(rules.NO_VALUE, f"{name} has no value", f'write {name}="…"', start)
            return Attribute(name, "", self._line(start))
        if not name:
            self._tell(rules.NO_VALUE, "= without a name before it", 'write name="…"', start)
        self.position += 1
        value = self._read_value(name)
        if len(value) > MAX_BYTES:
            wrong = f"{name} has a value of {len(value)} bytes"
            self._tell(rules.LONG_VALUE, wrong, f"write at most {MAX_BYTES}", start)
        return Attribute(name, value, self._line(start))

    def _read_value(self, name: str) -> str:
        start = self.position
        quote = self._peek()
        if quote not in "\"'":
            wrong = f"the value of {name} is not in double quotes right behind ="
            self._tell(rules.UNQUOTED, wrong, f'write {name}="…"')
            value = self._word(start, _END_OF_UNQUOTED)
            self.position += len(value)
            return value
        if quote == "'":
            wrong = f"the value of {name} is in single quotes"
            self._tell(rules.SINGLE_QUOTES, wrong, f'write {name}="…"')
        self._skip_past(quote, start + 1, f"write {quote} behind the value of {name}")
        return self.text[start + 1 : self.position - 1]

    def _check_name(self, name: str, at: int) -> None:
        if not 0 < len(name) <= MAX_BYTES:
            wrong = f"a name of {len(name)} bytes"
            self._tell(rules.NAME, wrong, f"write 1 to {MAX_BYTES}", at)

    def _word(self, start: int, end: re.Pattern[str]) -> str:
        found = end.search(self.text, start)
        return self.text[start : found.start() if found else len(self.text)]

    def _skip_past(self, what: str, start: int, instead: str) -> None:
        found = self.text.find(what, start)
        if found < 0:
            self._tell(rules.UNTERMINATED, "the file ends here inside a tag", instead)
            raise _Stop
        self.position = found + len(what)

    def _peek(self) -> str:
        if self.position >= len(self.text):
            wrong = "the file ends inside a tag"
            self._tell(rules.UNTERMINATED, wrong, "write > behind it", len(self.text) - 1)
            raise _Stop
        return self.text[self.position]

    def _line(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def _tell(self, rule: Rule, wrong: str, instead: str, at: int | None = None) -> None:
        self._note(self._line(self.position if at is None else at), rule, wrong, instead)

    def _note(self, line: int, rule: Rule, wrong: str, instead: str) -> None:
        self.findings.append(Finding(line, rule, wrong, instead))
