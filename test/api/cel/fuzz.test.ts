/** Random text and random token sequences must end quickly in a value or an error of the expression. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Budget } from '../../../src/api/cel/compiled-expression.ts';
import { ANY_READER, fromJson } from '../../../src/api/cel/documents.ts';
import { CompileError } from '../../../src/api/cel/language/ast.ts';
import { compile } from '../../../src/api/cel/language/compile.ts';
import { standardFunctions } from '../../../src/api/cel/library/index.ts';
import { parseType } from '../../../src/api/cel/types.ts';
import { BudgetError, EvaluationError } from '../../../src/api/cel/values.ts';

const TOKENS =
  'self oldSelf x y has( all( exists( map( filter( size( matches( split( join( format( replace( find( url( ip( quantity( duration( timestamp( optional.of( sortBy( sets.contains( . .? , ( ) [ ] { } ? : && || ! == != < <= > >= + - * / % in 0 1 -1 1.5 2u 9223372036854775807 "" "a" \'b\' r"\\d+" b"c" true false null [1,2] {"a":1} .spec .name .list .a .size() .value() .orValue(1)'.split(
    ' ',
  );
const VARIABLES = new Map([
  ['self', parseType('dyn')],
  ['oldSelf', parseType('map<string, dyn>')],
  ['x', parseType('string')],
  ['y', parseType('list<int>')],
]);
const VALUES: Record<string, unknown> = {
  self: { spec: { name: 'n', list: [1, 'a', null, { a: 1 }] }, a: 1, name: 'x' },
  oldSelf: { a: [1], name: 'x', __proto__: null },
  x: 'text',
  y: [1, 2, 3],
};

function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

it('evaluates random expressions to a value or a CEL error', () => {
  const random = numbers(20261121);
  const counts = { refused: 0, failed: 0, value: 0 };
  for (let round = 0; round < 20_000; round++) {
    const source = Array.from({ length: 1 + random(9) }, () => TOKENS[random(TOKENS.length)]).join(
      random(4) === 0 ? ' ' : '',
    );
    try {
      const program = compile(source, { functions: standardFunctions(), variables: VARIABLES });
      program.evaluate((name) => fromJson(VALUES[name] as never, ANY_READER), new Budget(10_000));
      counts.value += 1;
    } catch (error) {
      if (error instanceof CompileError) counts.refused += 1;
      else if (error instanceof EvaluationError || error instanceof BudgetError) counts.failed += 1;
      else throw new Error(`${source}: ${String(error)}`, { cause: error });
    }
  }
  assert.ok(counts.value > 100 && counts.failed > 5 && counts.refused > 1_000, JSON.stringify(counts));
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

const MEMBERS =
  'size contains startsWith endsWith matches charAt indexOf lastIndexOf lowerAscii replace split substring trim reverse join format find findAll isSorted sum min max sort slice flatten distinct hasValue value or orValue getFullYear getHours getHost getQuery isInteger asInteger add sub compareTo isGreaterThan family isLoopback containsIP containsCIDR ip masked validate major isLessThan'.split(
    ' ',
  );
const GLOBALS =
  'size int uint double string bytes bool timestamp duration type dyn url isURL quantity isQuantity ip isIP cidr isCIDR semver isSemver optional.of optional.ofNonZeroValue optional.none sets.contains sets.equivalent lists.range format.named format.dns1123Label strings.quote ip.isCanonical'.split(
    ' ',
  );

/** Expressions whose types are known only at run time. */
function dynamic(random: (below: number) => number, depth = 0): string {
  const below = (): string => dynamic(random, depth + 1);
  switch (random(depth > 4 ? 3 : 12)) {
    case 0:
      return [
        '1',
        '-3',
        '2u',
        '1.5',
        "'a'",
        "'10.0.0.1/8'",
        "'1h'",
        "'2026-11-21T10:00:00Z'",
        "b'x'",
        'true',
        'null',
        "'1.2.3'",
        "'https://e.com:1/p?q=1'",
        '[]',
        '{}',
      ][random(15)] as string;
    case 1:
      return ['self.spec', 'self.spec.list', 'self.spec.name', 'self.a', 'self.none'][random(5)] as string;
    case 2:
      return ['x', 'y', 'oldSelf', 'oldSelf.a'][random(4)] as string;
    case 3:
      return `dyn(${below()})`;
    case 4:
      return `(dyn(${below()}) ${['+', '-', '*', '/', '%', '<', '<=', '==', '!=', 'in', '&&', '||'][random(12)]} dyn(${below()}))`;
    case 5:
      return `[${below()}, dyn(${below()})]`;
    case 6:
      return `{dyn(${below()}): dyn(${below()})}`;
    case 7:
      return `dyn(${below()})[${random(2) === 0 ? '?' : ''}dyn(${below()})]`;
    case 8:
      return `dyn(${below()}).${['all', 'exists', 'exists_one', 'map', 'filter'][random(5)]}(v, dyn(${random(2) === 0 ? 'v' : below()}))`;
    case 9:
      return `${GLOBALS[random(GLOBALS.length)]}(${random(4) === 0 ? '' : `dyn(${below()})`}${random(3) === 0 ? `, dyn(${below()})` : ''})`;
    case 10:
      return `(dyn(${below()}) ? dyn(${below()}) : dyn(${below()}))`;
    default: {
      const args = Array.from({ length: random(3) }, () => `dyn(${below()})`).join(', ');
      return `dyn(${below()}).${MEMBERS[random(MEMBERS.length)]}(${args})`;
    }
  }
}

it('reports type errors of dynamic values at run time', () => {
  const random = numbers(3);
  const counts = { refused: 0, failed: 0, value: 0 };
  for (let round = 0; round < 20_000; round++) {
    const source = dynamic(random);
    try {
      const program = compile(source, { functions: standardFunctions(), variables: VARIABLES });
      program.evaluate((name) => fromJson(VALUES[name] as never, ANY_READER), new Budget(10_000));
      counts.value += 1;
    } catch (error) {
      if (error instanceof CompileError) counts.refused += 1;
      else if (error instanceof EvaluationError || error instanceof BudgetError) counts.failed += 1;
      else throw new Error(`${source}: ${String(error)}`, { cause: error });
    }
  }
  assert.ok(counts.value > 2_000 && counts.failed > 2_000, JSON.stringify(counts));
});

it('compiling random characters returns a program or a compile error', () => {
  const random = numbers(7);
  for (let round = 0; round < 20_000; round++) {
    const source = Array.from({ length: random(24) }, () =>
      String.fromCharCode(random(20) === 0 ? random(65536) : 32 + random(95)),
    ).join('');
    try {
      compile(source, { functions: standardFunctions(), variables: VARIABLES });
    } catch (error) {
      if (!(error instanceof CompileError))
        throw new Error(`${JSON.stringify(source)}: ${String(error)}`, { cause: error });
    }
  }
});
