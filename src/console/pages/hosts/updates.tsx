/** Progress of an update by host, a button to stop the update, and the roll-back to the earlier release. */
import { objectPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/api/access.ts';
import { MERGE_PATCH } from '../../data/api/api.ts';
import { type AnyObject, CLUSTER_VERSIONS, CONFIG_MAPS, conditionOf, NODES } from '../../data/api/resources.ts';
import { ageText } from '../../data/format.ts';
import { masterNames, readStore } from '../../data/hosts/administration.ts';
import { answering } from '../../data/hosts/contact.ts';
import { RELEASES, requestRollBack, rollBackOf, stopUpdate } from '../../data/hosts/roll-back.ts';
import { canStop, desiredVersion, isUpdating, updateProgress } from '../../data/hosts/updates.ts';
import { sanitizeLines } from '../../data/plain-text.ts';
import { api } from '../../ui/context.ts';
import { useFeed, usePoll } from '../../ui/hooks.ts';
import { Action, Link, pathOf, State } from '../../ui/parts.tsx';

const LEVEL_POLL_MS = 60_000;

const patchVersion = (version: AnyObject, body: object): Promise<unknown> =>
  api.json(objectPath(CLUSTER_VERSIONS, version.metadata?.name ?? '', undefined), {
    method: 'PATCH',
    contentType: MERGE_PATCH,
    body,
  });

const questionFor = (version: AnyObject) =>
  questionOf('patch', CLUSTER_VERSIONS, undefined, { name: version.metadata?.name ?? '' });

/** Shows the version of the cluster and the progress of each host. */
export function Progress({ version, nowMs }: { readonly version: AnyObject; readonly nowMs: number }) {
  const { items, error } = useFeed(NODES);
  const desired = desiredVersion(version);
  const { hosts, updated, sentence } = updateProgress(version, items);
  const failing = conditionOf(version, 'Failing');
  const progressing = conditionOf(version, 'Progressing');
  return (
    <>
      <p>
        {isUpdating(version) ? 'Update to' : 'Version'} <strong>{desired}</strong>
      </p>
      {failing?.status === 'True' ? (
        <p>
          <State level="bad" text={failing.message} />
        </p>
      ) : null}
      {progressing?.status === 'True' ? (
        <p>
          <State level="warn" text={progressing.message} />
        </p>
      ) : null}
      <p aria-live="polite">
        {hosts.length > 0 ? sentence : error === undefined ? 'The hosts are being read.' : error.message}{' '}
        {updated < hosts.length ? <progress aria-label="Updated hosts" max={hosts.length} value={updated} /> : null}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is operated by keyboard */}
      <section class="scroll rows" aria-label="Versions of the hosts" tabIndex={0}>
        <table>
          <caption class="hidden">Versions of the hosts</caption>
          <thead>
            <tr>
              {['Host', 'Version', 'Phase', 'Since', 'Message'].map((each) => (
                <th key={each} scope="col">
                  {each}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {hosts.map(({ name, version: running, phase, level, message, since }) => (
              <tr key={name}>
                <td>
                  <Link to={pathOf('nodes', name)}>{name}</Link>
                </td>
                <td data-column="Version">{running}</td>
                <td data-column="Phase">
                  <State level={level} text={phase} />
                </td>
                <td data-column="Since" title={since}>
                  {since === '' ? '' : ageText(since, nowMs)}
                </td>
                <td data-column="Message" class="wrap">
                  {sanitizeLines(message)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {canStop(version) ? (
        <p>
          <Action
            label="Cancel the update"
            question={questionFor(version)}
            confirm={`No further host starts the update to ${desired}. A host that has started finishes it, and hosts that have ${desired} keep it. To return them, roll back instead.`}
            done="The update is cancelled."
            run={() => patchVersion(version, stopUpdate)}
          />
        </p>
      ) : null}
    </>
  );
}

/** Requests the newest completed release before the current one. */
export function RollBack({ version }: { readonly version: AnyObject }) {
  const { items: nodes } = useFeed(NODES);
  const { items: announcements, state, error } = useFeed(CONFIG_MAPS, RELEASES);
  const masters = masterNames(answering(nodes));
  const storeLevel = usePoll((signal) => levelOf(masters, signal), LEVEL_POLL_MS, masters.join());
  const target = rollBackOf(version, { nodes, announcements, storeLevel });
  if (target === undefined) return <p class="muted">No completed release precedes this one.</p>;
  const desired = desiredVersion(version);
  const refusal =
    error !== undefined && announcements.length === 0
      ? `The imported releases cannot be read: ${error.message}`
      : state === 'loading'
        ? 'The imported releases are being read.'
        : target.refusal;
  return (
    <p>
      <Action
        label={`Roll back to ${target.version}`}
        question={questionFor(version)}
        {...(refusal === undefined ? {} : { disabled: refusal })}
        confirm={`${isUpdating(version) ? `The update to ${desired} stops. ` : ''}The hosts return to ${target.version}, one after the other. Objects and volumes are kept and pods keep running; fields that only ${desired} knows are lost when their objects are written again. The first master refuses the request, before anything is changed, if ${target.version} cannot read the store. The request is sent with force, because the server refuses older releases otherwise.`}
        done={`The return to ${target.version} is requested.`}
        run={() => patchVersion(version, requestRollBack(target.version))}
      />
      {refusal === undefined ? null : <span class="muted"> {refusal}</span>}{' '}
      {refusal !== undefined && refusal === target.refusal && target.isMissing ? (
        <Link to="/hosts?view=upload&older=yes">Upload its bundle</Link>
      ) : null}
    </p>
  );
}

/**
 * Level of the store's log, from the first master that responds. Undefined if no master responds or the user may not
 * read it.
 */
async function levelOf(masters: readonly string[], signal: AbortSignal): Promise<number | undefined> {
  for (const node of masters) {
    const read = await readStore(api, node, signal).catch(() => undefined);
    if (read?.level?.value !== undefined) return read.level.value;
  }
  return undefined;
}
