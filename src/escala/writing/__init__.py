"""Everything that Escala writes: whole or not at all, and never over what somebody else put there.

A single file is written beside its target and renamed. A folder is written beside its target (`.NAME.partial`) and
exchanged with it in one step. Who writes holds a lock; what a killed run left behind is found and settled by the next
run of the same target.
"""

from escala.writing.files import output_file, remove, whole_file, write_json, write_whole
from escala.writing.folder import claimed, output_folder, saved_folder
from escala.writing.kept import Kept, Pieces
from escala.writing.places import unwritable
from escala.writing.sealing import INDEX, PAGE, SEAL, own_page, sealed_text

__all__ = [
    "INDEX",
    "PAGE",
    "SEAL",
    "Kept",
    "Pieces",
    "claimed",
    "output_file",
    "output_folder",
    "own_page",
    "remove",
    "saved_folder",
    "sealed_text",
    "unwritable",
    "whole_file",
    "write_json",
    "write_whole",
]
