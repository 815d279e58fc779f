/** Explains in words why a rig does not answer: fixtures that no host reports, or a host that is not ready. */

import type { Node } from '../../../api/generated/core/v1.ts';
import { countText } from '../../../base/text/count-text.ts';
import { type AnyObject, listAt, textAt } from '../api/resources.ts';
import { quantityNumber } from '../format.ts';
import type { Finding } from '../pods/explain.ts';
import { nodeState } from './node-state.ts';

/** Prefix of the resources with which nodes report fixtures. */
const FIXTURE_PREFIX = 'rig.hyperedge.dev/';

interface Fixture {
  readonly label: string;
  /** Names of the nodes that report the fixture. */
  readonly nodes: readonly string[];
}

const nameOf = ({ metadata }: Node): string => metadata?.name ?? '';

export function explainRig(rig: AnyObject, nodes: readonly Node[]): readonly Finding[] {
  const wanted = textAt(rig, 'spec', 'node');
  const own = textAt(rig, 'status', 'node');
  const candidates = wanted === '' ? nodes : nodes.filter((node) => nameOf(node) === wanted);
  if (own !== '') return explainHost(rig, candidates.find((node) => nameOf(node) === own) ?? nodes[0], own);
  if (candidates.length === 0)
    return wanted === ''
      ? []
      : [error(`The host ${wanted} of the rig does not exist.`, 'Correct spec.node of the rig.')];
  const fixtures = listAt(rig, 'spec', 'fixtures').map((each) => fixtureOf(each, candidates));
  if (fixtures.length === 0) return [error('The rig has no fixtures.', 'Add them to spec.fixtures of the rig.')];
  const missing = fixtures.filter((fixture) => fixture.nodes.length === 0);
  if (missing.length > 0)
    return missing.map(({ label }) =>
      error(
        `The fixture ${label} is on no host${wanted === '' ? '' : ` (the rig requires the host ${wanted})`}.`,
        'Plug it in and check its cable and power. If it is plugged in, compare its entry under "fixtures" in ' +
          '/etc/origin/bootstrap.yaml of its host with the device.',
      ),
    );
  const places = fixtures.map((each) => `${each.label} on ${each.nodes.join(' and ')}`).join(', ');
  return [
    error(`No single host has all fixtures of the rig: ${places}.`, 'Plug all fixtures of the rig into the same host.'),
  ];
}

function explainHost(rig: AnyObject, node: Node | undefined, name: string): readonly Finding[] {
  if (node === undefined || nameOf(node) !== name) return [];
  const { level, text } = nodeState(node);
  if (level === 'bad')
    return [
      error(
        `The host ${name} of the rig is ${text === 'Unreachable' ? 'not reachable' : 'not ready'}.`,
        `See the page of the node ${name} for the reason.`,
      ),
    ];
  const dead = listAt(rig, 'spec', 'fixtures')
    .map((each) => textAt(each, 'fixture'))
    .filter((fixture) => quantityNumber(node.status?.allocatable?.[FIXTURE_PREFIX + fixture]) === 0);
  if (dead.length === 0) return [];
  return [
    error(
      `The host ${name} does not reach ${countText(dead.length, 'fixture')} of the rig: ${dead.join(', ')}.`,
      'Check the cable and the power of the board, then plug it in again.',
    ),
  ];
}

function fixtureOf(entry: AnyObject, nodes: readonly Node[]): Fixture {
  const fixture = textAt(entry, 'fixture');
  const role = textAt(entry, 'role');
  const reporting = nodes.filter(({ status }) => Object.hasOwn(status?.capacity ?? {}, FIXTURE_PREFIX + fixture));
  return { label: role === '' ? fixture : `${fixture} (${role})`, nodes: reporting.map(nameOf) };
}

const error = (title: string, fix: string): Finding => ({ severity: 'error', title, detail: '', fix });
