/** Compiles patterns to instructions of an NFA (Thompson's construction). */
import type { CharSet } from './charset.ts';
import { type Assertion, type Node, RegexpError } from './syntax.ts';

export type Instruction =
  | { readonly op: 'char'; readonly set: CharSet }
  | { readonly op: 'match' }
  | { readonly op: 'jump'; to: number }
  /** Continues at both instructions. The path through `first` has priority. */
  | { readonly op: 'split'; first: number; second: number }
  | { readonly op: 'save'; readonly slot: number }
  | { readonly op: 'assert'; readonly what: Assertion };

/** Maximum number of instructions, which nested repetitions can exceed. Go rejects such patterns too. */
const MAX_INSTRUCTIONS = 20_000;

export function programOf(root: Node, pattern: string): readonly Instruction[] {
  const program: Instruction[] = [];
  const emit = (instruction: Instruction): number => {
    if (program.length >= MAX_INSTRUCTIONS) throw new RegexpError('expression too large', pattern);
    program.push(instruction);
    return program.length - 1;
  };
  const optional = (body: Node, greedy: boolean): void => {
    const split: { op: 'split'; first: number; second: number } = { op: 'split', first: 0, second: 0 };
    const at = emit(split);
    write(body);
    split.first = greedy ? at + 1 : program.length;
    split.second = greedy ? program.length : at + 1;
  };
  const star = (body: Node, greedy: boolean): void => {
    const split: { op: 'split'; first: number; second: number } = { op: 'split', first: 0, second: 0 };
    const at = emit(split);
    write(body);
    emit({ op: 'jump', to: at });
    split.first = greedy ? at + 1 : program.length;
    split.second = greedy ? program.length : at + 1;
  };
  const write = (node: Node): void => {
    switch (node.op) {
      case 'empty':
        return;
      case 'set':
        emit({ op: 'char', set: node.set });
        return;
      case 'assert':
        emit({ op: 'assert', what: node.what });
        return;
      case 'concat':
        for (const part of node.parts) write(part);
        return;
      case 'capture':
        emit({ op: 'save', slot: node.index * 2 });
        write(node.body);
        emit({ op: 'save', slot: node.index * 2 + 1 });
        return;
      case 'alternate': {
        const ends: { op: 'jump'; to: number }[] = [];
        for (const [index, part] of node.parts.entries()) {
          if (index === node.parts.length - 1) {
            write(part);
            continue;
          }
          const split: { op: 'split'; first: number; second: number } = { op: 'split', first: 0, second: 0 };
          split.first = emit(split) + 1;
          write(part);
          const jump: { op: 'jump'; to: number } = { op: 'jump', to: 0 };
          emit(jump);
          ends.push(jump);
          split.second = program.length;
        }
        for (const jump of ends) jump.to = program.length;
        return;
      }
      case 'repeat': {
        for (let count = 0; count < node.min; count++) write(node.body);
        if (node.max === Number.POSITIVE_INFINITY) star(node.body, node.greedy);
        else for (let count = node.min; count < node.max; count++) optional(node.body, node.greedy);
        return;
      }
    }
  };
  write(root);
  emit({ op: 'match' });
  return program;
}
