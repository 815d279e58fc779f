/** Simple interpreter of the nft programs that the planner writes. It rejects the same programs as the kernel. */
import assert from 'node:assert/strict';
import { isInNetwork } from '../../../../src/base/addresses/addresses.ts';

export interface Packet {
  readonly from: string;
  readonly to: string;
  readonly protocol: string;
  readonly port: number;
}

export class Table {
  chains = new Map<string, string[]>();
  sets = new Map<string, Map<string, string>>();

  apply(program: string): void {
    for (const line of program.split('\n').filter((each) => each !== '')) {
      const [verb = '', what = '', family, , name = '', ...words] = line.split(' ');
      assert.equal(family, 'inet');
      const rest = words.join(' ');
      if (what === 'table') {
        if (verb === 'delete') this.#clear();
      } else if (verb === 'add' && (what === 'set' || what === 'map')) {
        assert.ok(!this.sets.has(name), line);
        this.sets.set(name, new Map());
      } else if (verb === 'delete' && what === 'set') {
        assert.ok(!this.#rules().some((rule) => `${rule} `.includes(`@${name} `)), `${name} in use`);
        assert.ok(this.sets.delete(name), line);
      } else if (verb === 'add' && what === 'chain') {
        assert.ok(!this.chains.has(name), line);
        this.chains.set(name, []);
      } else if (verb === 'flush' && what === 'chain') {
        assert.ok(this.chains.has(name), line);
        this.chains.set(name, []);
      } else if (verb === 'delete' && what === 'chain') {
        assert.deepEqual(this.chains.get(name), [], line);
        this.chains.delete(name);
        const verdicts = [...this.sets.values()].flatMap((set) => [...set.values()]);
        assert.ok(![...verdicts, ...this.#rules()].some((text) => text === `jump ${name}`), `${name} referenced`);
      } else if (verb === 'add' && what === 'rule') {
        for (const [, target = ''] of rest.matchAll(/jump (\S+)/g)) assert.ok(this.chains.has(target), line);
        for (const [, set = ''] of rest.matchAll(/@(\S+)/g)) assert.ok(this.sets.has(set), line);
        this.chains.get(name)?.push(rest);
      } else if (what === 'element') this.#change(verb, name, rest);
      else assert.fail(`unknown line: ${line}`);
    }
  }

  /** Whether the first packet of a new connection is forwarded. */
  passes(packet: Packet): boolean {
    return this.#run('egress', packet) !== 'drop' && this.#run('ingress', packet) !== 'drop';
  }

  #clear(): void {
    this.chains.clear();
    this.sets.clear();
  }

  #rules(): string[] {
    return [...this.chains.values()].flat();
  }

  #change(verb: string, name: string, rest: string): void {
    const set = this.sets.get(name);
    assert.ok(set !== undefined, name);
    for (const element of rest.slice(2, -2).split(', ')) {
      const [key = '', verdict = ''] = element.split(' : ');
      if (verb === 'delete') assert.ok(set.delete(key), `no element ${key} in ${name}`);
      else {
        assert.ok(!set.has(key), `element ${key} of ${name} exists`);
        if (verdict !== '') assert.ok(this.chains.has(verdict.replace('jump ', '')), verdict);
        set.set(key, verdict);
      }
    }
  }

  #run(chain: string, packet: Packet): 'accept' | 'drop' | undefined {
    const rules = this.chains.get(chain);
    assert.ok(rules !== undefined, chain);
    for (const rule of rules) {
      const verdict = this.#rule(rule, packet);
      if (verdict === undefined) continue;
      if (verdict === 'accept' || verdict === 'drop') return verdict;
      const inner = this.#run(verdict.replace('jump ', ''), packet);
      if (inner !== undefined) return inner;
    }
    return undefined;
  }

  #rule(rule: string, packet: Packet): string | undefined {
    let rest = rule;
    const take = (pattern: RegExp): RegExpExecArray | undefined => {
      const match = pattern.exec(rest);
      if (match === null) return undefined;
      rest = rest.slice(match[0].length);
      return match;
    };
    const isSix = packet.to.includes(':');
    const field = (text: string): string | undefined => {
      if (text === 'meta l4proto') return packet.protocol;
      if (text === 'th dport') return `${packet.port}`;
      const [family = '', side = ''] = text.split(' ');
      if ((family === 'ip6') !== isSix) return undefined;
      return side === 'saddr' ? packet.from : packet.to;
    };
    if (rule.startsWith('ct state')) return undefined;
    for (;;) {
      const fields = take(/^((?:(?:ip6?|meta|th) \w+ \. )*(?:ip6?|meta|th) \w+) /)?.[1]?.split(' . ');
      if (fields === undefined) return rest.replace('counter ', '');
      if (fields[0] === 'meta nfproto') {
        if ((take(/^ipv([46]) /)?.[1] === '6') !== isSix) return undefined;
        continue;
      }
      const values = fields.map(field);
      if (values.includes(undefined)) return undefined;
      const key = values.join(' . ');
      const map = take(/^vmap @(\S+)/)?.[1];
      if (map !== undefined) return this.sets.get(map)?.get(key);
      const set = take(/^@(\S+) /)?.[1];
      if (set !== undefined) {
        if (this.sets.get(set)?.has(key) !== true) return undefined;
        continue;
      }
      const negated = take(/^!= /) !== undefined;
      const list = (take(/^\{ (.*?) \} /)?.[1] ?? take(/^(\S+) /)?.[1] ?? '').split(', ');
      if (list.some((each) => holds(each, key)) === negated) return undefined;
    }
  }
}

function holds(element: string, key: string): boolean {
  if (element.includes('/')) return isInNetwork(key, element);
  const [protocol, range = ''] = element.split(' . ');
  const [from = '', to = from] = range.split('-');
  const [ofKey, port] = key.split(' . ');
  return protocol === ofKey && Number(port) >= Number(from) && Number(port) <= Number(to);
}
