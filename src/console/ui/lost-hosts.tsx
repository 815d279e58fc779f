/** Shows hosts that do not respond, each with the time of the last contact and a suggested fix. */
import type { Node } from '../../api/generated/core/v1.ts';
import { ageText, timeText } from '../data/format.ts';
import { lostHosts, readRenewals } from '../data/hosts/contact.ts';
import { api } from './context.ts';
import { useNow, usePoll } from './hooks.ts';
import { Link, pathOf, State } from './parts.tsx';

/**
 * Interval for reading leases. It can be long: the lease of a host that is down does not change, and a returned host is
 * removed.
 */
const RENEWALS_MS = 60_000;

export function LostHosts({ nodes }: { readonly nodes: readonly Node[] }) {
  const names = lostHosts(nodes, new Map()).map(({ name }) => name);
  return names.length === 0 ? null : <Lost key={names.join()} nodes={nodes} names={names} />;
}

function Lost({ nodes, names }: { readonly nodes: readonly Node[]; readonly names: readonly string[] }) {
  const nowMs = useNow();
  const renewals = usePoll((signal) => readRenewals(api, names, signal), RENEWALS_MS, names.join());
  return (
    <section aria-label="Hosts that do not answer">
      {lostHosts(nodes, renewals ?? new Map()).map(({ name, lastContact, detail, fix }) => (
        <div key={name} class="card finding error">
          <p>
            <State level="bad" text="Unreachable" />: <Link to={pathOf('nodes', name)}>{name}</Link>{' '}
            {lastContact === ''
              ? 'has never reported.'
              : `does not answer. Last contact ${ageText(lastContact, nowMs)} ago, at ${timeText(lastContact)}.`}{' '}
            {detail}
          </p>
          <p>Fix: {fix}</p>
        </div>
      ))}
    </section>
  );
}
