import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  addressesToSave,
  type Backend,
  BackendPool,
  type Finding,
  type Source,
} from '../../../../src/network/balancer/core/index.ts';
import { seededRandom } from '../../../client/clocks.ts';

const NONE: ReadonlySet<string> = new Set();

const poolOf = (...targets: string[]): BackendPool => {
  const pool = new BackendPool();
  pool.setTargets('bootstrap', targets);
  return pool;
};
const of = (pool: BackendPool, target: string): Backend => {
  const found = pool.list().find((each) => each.target === target);
  assert.ok(found, `${target} is not in the pool`);
  return found;
};

describe('choice of an API server', () => {
  it('selects the ready API server with the fewest connections', () => {
    const pool = poolOf('a', 'b', 'c');
    for (const target of ['a', 'b']) pool.found(target, 'ready');
    pool.opened('a');
    assert.equal(pool.choose(NONE, 0.99), 'b');
    pool.opened('b');
    pool.opened('b');
    assert.equal(pool.choose(NONE, 0.99), 'a');
    assert.equal(pool.choose(new Set(['a', 'b']), 0), 'c');
    assert.equal(pool.choose(new Set(['a', 'b', 'c']), 0), undefined);
  });

  it('selects randomly among API servers with equal connections', () => {
    const pool = poolOf('a', 'b', 'c');
    assert.deepEqual(
      [0, 0.34, 0.67].map((random) => pool.choose(NONE, random)),
      ['a', 'b', 'c'],
    );
  });

  it('marks a ready server unready after three failed probes, and a server that was never ready after one', () => {
    const pool = poolOf('a', 'b');
    pool.found('b', 'ready');
    assert.deepEqual(pool.found('a', 'silent'), { before: 'unknown', after: 'unready' });
    assert.deepEqual(pool.found('a', 'ready'), { before: 'unready', after: 'ready' });
    assert.equal(pool.found('a', 'unready'), undefined);
    assert.equal(pool.found('a', 'silent'), undefined);
    assert.equal(of(pool, 'a').treatment, 'keep');
    assert.deepEqual(pool.found('a', 'unready'), { before: 'ready', after: 'unready' });
    assert.equal(of(pool, 'a').treatment, 'drain');
  });

  it('drains a stopping server and resets an unreachable one only if another server is ready', () => {
    for (const [finding, treatment] of [
      ['stopping', 'drain'],
      ['unreachable', 'reset'],
      ['untrusted', 'reset'],
    ] as const) {
      const pool = poolOf('a', 'b');
      pool.found('a', 'ready');
      pool.found('a', finding);
      assert.equal(of(pool, 'a').treatment, 'keep', finding);
      pool.found('b', 'ready');
      assert.equal(of(pool, 'a').treatment, treatment, finding);
      assert.equal(of(pool, 'b').treatment, 'keep');
    }
  });

  it('removes a server that no source lists after its last connection has closed', () => {
    const pool = poolOf('a', 'b');
    pool.found('b', 'ready');
    pool.opened('a');
    pool.setTargets('bootstrap', ['b']);
    assert.equal(of(pool, 'a').treatment, 'drain');
    assert.equal(pool.choose(new Set(['b']), 0), undefined);
    pool.closed('a');
    assert.deepEqual(
      pool.list().map(({ target }) => target),
      ['b'],
    );
  });

  it('limits the pool to 32 API servers and removes saved addresses first', () => {
    const pool = new BackendPool();
    const many = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}${at}`);
    pool.setTargets('saved', many('saved', 40));
    assert.equal(pool.list().length, 32);
    pool.setTargets('api', many('api', 30));
    assert.equal(pool.list().filter(({ target }) => target.startsWith('api')).length, 30);
    assert.equal(pool.list().length, 32);
  });

  it('saves 16 servers: the current servers first, then previously saved ones', () => {
    assert.deepEqual(addressesToSave(['b', 'c'], ['a', 'b']), ['b', 'c', 'a']);
    const many = Array.from({ length: 20 }, (_, at) => `m${at}`);
    assert.deepEqual(addressesToSave(['x'], many), ['x', ...many.slice(0, 15)]);
  });
});

/** Oracle: a slow, direct implementation of the rules. */
class Oracle {
  readonly health = new Map<string, string>();
  readonly failures = new Map<string, number>();
  readonly connections = new Map<string, number>();
  readonly named = new Map<Source, string[]>();

  sources(target: string): number {
    return [...this.named.values()].filter((targets) => targets.includes(target)).length;
  }

  choices(tried: ReadonlySet<string>): string[] {
    const left = [...this.health.keys()].filter((target) => !tried.has(target) && this.sources(target) > 0);
    for (const health of ['ready', 'unknown', 'unready', 'stopping', 'dead', 'untrusted']) {
      const same = left.filter((target) => this.health.get(target) === health);
      const least = Math.min(...same.map((target) => this.connections.get(target) ?? 0));
      if (same.length > 0) return same.filter((target) => (this.connections.get(target) ?? 0) === least);
    }
    return [];
  }
}

const FINDINGS: readonly Finding[] = ['ready', 'unready', 'stopping', 'silent', 'unreachable', 'untrusted'];
const AFTER: Readonly<Record<Finding, string>> = {
  ready: 'ready',
  stopping: 'stopping',
  unreachable: 'dead',
  untrusted: 'untrusted',
  unready: 'unready',
  silent: 'unready',
};

it('the pool of API servers behaves like a direct implementation of the rules in 20,000 random steps', () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1e6);
  const random = seededRandom(seed);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random.random() * values.length)] as T;
  const all = ['a', 'b', 'c', 'd', 'e'];
  const pool = new BackendPool();
  const oracle = new Oracle();
  for (let step = 0; step < 20_000; step++) {
    const target = pick(all);
    const action = random.random();
    if (action < 0.1) {
      const source = pick(['bootstrap', 'api', 'gossip', 'saved'] as const);
      const targets = all.filter(() => random.random() < 0.6);
      pool.setTargets(source, targets);
      oracle.named.set(source, targets);
    } else if (action < 0.5 && oracle.health.has(target)) {
      const finding = pick(FINDINGS);
      pool.found(target, finding);
      const failed = finding === 'unready' || finding === 'silent';
      const failures = failed ? (oracle.failures.get(target) ?? 0) + 1 : 0;
      oracle.failures.set(target, failures);
      if (!(failed && failures < 3 && oracle.health.get(target) === 'ready')) oracle.health.set(target, AFTER[finding]);
    } else if (action < 0.8) {
      const chosen = pool.choose(NONE, random.random());
      if (chosen !== undefined) {
        pool.opened(chosen);
        oracle.connections.set(chosen, (oracle.connections.get(chosen) ?? 0) + 1);
      }
    } else if ((oracle.connections.get(target) ?? 0) > 0) {
      pool.closed(target);
      oracle.connections.set(target, (oracle.connections.get(target) ?? 0) - 1);
    }
    for (const each of all) {
      const wanted = oracle.sources(each) > 0 || (oracle.connections.get(each) ?? 0) > 0;
      if (wanted && !oracle.health.has(each)) oracle.health.set(each, 'unknown');
      if (!wanted) for (const map of [oracle.health, oracle.failures, oracle.connections]) map.delete(each);
    }
    const context = `seed ${seed}, step ${step}`;
    assert.deepEqual(new Map(pool.list().map(({ target: name, health }) => [name, health])), oracle.health, context);
    const tried = new Set(all.filter(() => random.random() < 0.2));
    const choices = oracle.choices(tried);
    const chosen = pool.choose(tried, random.random());
    assert.ok(chosen === undefined ? choices.length === 0 : choices.includes(chosen), `${context}: ${chosen}`);
    const isReady = (name: string) => oracle.health.get(name) === 'ready' && oracle.sources(name) > 0;
    for (const { target: name, treatment } of pool.list())
      if (treatment !== 'keep')
        assert.ok(
          all.some((each) => each !== name && isReady(each)),
          `${context}: ${name}`,
        );
  }
});
