/** Fields of the bootstrap file for fixtures of test rigs. */

import type { Parsed } from '../../wire/strict-yaml.ts';
import { dictionary, type Field, list, object, oneOf, string } from '../../wire/strict-yaml.ts';
import type { DeclaredFixture } from '../fixtures-port.ts';
import { fixtureDeviceName } from '../kinds/fixtures.ts';

/** Pattern of fixture names. The name becomes part of a resource name, `rig.hyperedge.dev/<name>`. */
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const absolutePath = (): Field<string> => string({ pattern: /^\/[^\0]*$/, fix: 'give an absolute path' });

const fixtureShape = {
  type: oneOf('serial', 'gpio', 'can', 'video', 'block', 'net', 'relay', 'device'),
  path: absolutePath(),
  match: dictionary(string()),
  containerPath: absolutePath(),
} as const;
type FixtureFile = Parsed<typeof fixtureShape, never>;

export function fixturesField(): Field<ReadonlyMap<string, FixtureFile>> {
  const field = dictionary(object(fixtureShape));
  return {
    ...field,
    parse: (at) => {
      const fixtures = field.parse(at);
      const devices = new Map<string, string>();
      for (const [name, { path, match }] of fixtures) {
        if (!NAME.test(name))
          throw at.fail(`"${name}" is not a fixture name; use up to 63 letters, digits, "-", "_" and "."`);
        if ((path === undefined) === (match === undefined))
          throw at.fail(`fixture "${name}" needs either path or match; give one of them`);
        const device = fixtureDeviceName(name);
        const other = devices.get(device);
        if (other !== undefined)
          throw at.fail(`fixtures "${other}" and "${name}" have the same device name "${device}"; rename one of them`);
        devices.set(device, name);
        if (match?.size === 0) throw at.fail(`fixture "${name}": match is empty; give attributes such as serial`);
      }
      return fixtures;
    },
  };
}

/** Field with the commands that switch boards. Each has a program's path and its arguments; no shell is used. */
export function rigPowerField(): Field<ReadonlyMap<string, readonly string[]>> {
  const field = dictionary(list(string()));
  return {
    ...field,
    parse: (at) => {
      const commands = field.parse(at);
      for (const [name, [program]] of commands) {
        if (!NAME.test(name))
          throw at.fail(`"${name}" is not a command name; use up to 63 letters, digits, "-", "_" and "."`);
        if (program?.startsWith('/') !== true)
          throw at.fail(`command "${name}" must begin with a program; give its absolute path`);
      }
      return commands;
    },
  };
}

export const declaredFixtures = (file: ReadonlyMap<string, FixtureFile> = new Map()): readonly DeclaredFixture[] =>
  [...file].map(([name, { type = 'device', match, ...rest }]) => ({
    name,
    type,
    ...rest,
    ...(match === undefined ? {} : { match: Object.fromEntries(match) }),
  }));
