import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Expression, parseExpression } from '../../../src/alerts/core/expression.ts';
import { parseTemplate } from '../../../src/alerts/core/template.ts';
import { generator } from '../../support/random.ts';

describe('alert expressions', () => {
  it('operators of alert expressions follow the precedence of PromQL and are left-associative', () => {
    const text = (expression: Expression): string => printed(expression);
    assert.equal(text(parseExpression('a + b * c > 1')), '((a + (b * c)) > 1)');
    assert.equal(text(parseExpression('a - b - c')), '((a - b) - c)');
    assert.equal(text(parseExpression('a or b and c')), '(a or (b and c))');
  });

  for (const [text, problem] of [
    ['a @ 5', /not supported/],
    ['a offset 5m', /not supported/],
    ['rate(a)', /must be a range/],
    ['rate(a[5m:1m])', /not a duration/],
    ['a[5m]', /needs a function/],
    ['deriv(a[5m])', /deriv is not supported/],
    ['a / on (x) group_left b', /group_left is not supported/],
    ['a > bool 1', /bool is not supported/],
    ['{job="x"}', /not expected/],
    ['a{x="\\d"}', /unsupported escape/],
    ['(a', /"\)" is missing/],
    ['', /not expected/],
    [`${'('.repeat(1000)}a${')'.repeat(1000)}`, /nested too deeply/],
  ] as const) {
    it(`rejects ${text.slice(0, 40)}`, () => {
      assert.throws(() => parseExpression(text), { code: 'bad-rule', message: problem });
    });
  }

  it('parsing a printed alert expression returns the same expression', () => {
    const random = generator(3);
    for (let run = 0; run < 500; run += 1) {
      const expression = randomVector(random, 4);
      assert.deepEqual(parseExpression(printed(expression)), expression, printed(expression));
    }
  });

  it('the parser of alert expressions returns an expression or an error for any text within a bounded time', () => {
    const random = generator(5);
    const parts = ['a', '(', ')', '{', '}', '[5m]', '==', '=~', '"x"', ',', '1', 'rate', 'sum', 'by', '-', 'and', '$'];
    for (let run = 0; run < 3000; run += 1) {
      const text = Array.from({ length: 12 }, () => parts[Math.floor(random() * parts.length)]).join(' ');
      try {
        assert.ok(parseExpression(text));
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'bad-rule', text);
      }
    }
  });
});

describe('alert templates', () => {
  it('alert templates replace labels and the value', () => {
    const template = parseTemplate('{{ $labels.node }} has {{$value}}{{ $labels.none }}');
    assert.equal(template(new Map([['node', 'n1']]), 3), 'n1 has 3');
  });

  it('alert templates reject functions', () => {
    assert.throws(() => parseTemplate('{{ $value | humanize }}'), { code: 'bad-rule' });
    assert.throws(() => parseTemplate('{{ printf "x" }}'), { code: 'bad-rule' });
  });
});

function printed(expression: Expression): string {
  switch (expression.kind) {
    case 'number':
      return String(expression.value);
    case 'selector': {
      const matchers = expression.matchers.map(
        ({ label, operator, value }) => `${label}${operator}${JSON.stringify(value)}`,
      );
      const range = expression.rangeMs === undefined ? '' : `[${expression.rangeMs}ms]`;
      return `${expression.metric}${matchers.length === 0 ? '' : `{${matchers.join(', ')}}`}${range}`;
    }
    case 'call':
      return `${expression.name}(${expression.arguments.map(printed).join(', ')})`;
    case 'aggregation': {
      const { keep, labels } = expression.grouping;
      return `${expression.operator} ${keep ? 'by' : 'without'} (${labels.join(', ')}) (${printed(expression.of)})`;
    }
    case 'binary': {
      const { matching } = expression;
      const on = matching === undefined ? '' : ` ${matching.keep ? 'on' : 'ignoring'} (${matching.labels.join(',')})`;
      return `(${printed(expression.left)} ${expression.operator}${on} ${printed(expression.right)})`;
    }
  }
}

function randomVector(random: () => number, depth: number): Expression {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
  const selector = (rangeMs: number | undefined): Expression => ({
    kind: 'selector',
    metric: pick(['up', 'some_metric_total', 'a:b']),
    matchers:
      random() < 0.5
        ? []
        : [
            {
              label: pick(['job', 'code']),
              operator: pick(['=', '!=', '=~', '!~'] as const),
              value: pick(['5..', 'a"\\\n', '']),
            },
          ],
    rangeMs,
  });
  if (depth === 0) return selector(undefined);
  const next = (): Expression => randomVector(random, depth - 1);
  switch (Math.floor(random() * 5)) {
    case 0:
      return { kind: 'call', name: pick(['rate', 'increase', 'changes'] as const), arguments: [selector(300_000)] };
    case 1:
      return {
        kind: 'call',
        name: 'histogram_quantile',
        arguments: [{ kind: 'number', value: 0.99 }, next()],
      };
    case 2:
      return {
        kind: 'aggregation',
        operator: pick(['sum', 'max'] as const),
        grouping: { keep: random() < 0.5, labels: pick([[], ['job'], ['job', 'code']]) },
        of: next(),
      };
    case 3:
      return { kind: 'binary', operator: '>', left: next(), right: { kind: 'number', value: 5 }, matching: undefined };
    default:
      return {
        kind: 'binary',
        operator: pick(['+', '-', '*', '/', 'or', 'and', 'unless', '==', '<='] as const),
        left: next(),
        right: next(),
        matching: random() < 0.5 ? undefined : { keep: random() < 0.5, labels: ['job'] },
      };
  }
}
