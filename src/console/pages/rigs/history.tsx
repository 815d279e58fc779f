/** Timeline of the uses of a rig, with the same facts as a table. */

import { useMemo, useState } from 'preact/hooks';
import { countText } from '../../../base/text/count-text.ts';
import type { AnyObject } from '../../data/api/resources.ts';
import { timeText } from '../../data/format.ts';
import { type Timeline, timelineOf, USE_SPANS, type UseSpan, type UseView, usesOf } from '../../data/hosts/rig-uses.ts';
import { useNow } from '../../ui/hooks.ts';
import { Link, pathOf } from '../../ui/parts.tsx';
import { ShortTable } from '../../ui/short-table.tsx';

/** Coordinates of the drawing, which is stretched to the width of the page. */
const WIDTH = 1000;
const HEIGHT = 24;

export function RigHistory({ rig }: { readonly rig: AnyObject }) {
  const [span, setSpan] = useState<UseSpan>('24h');
  const nowMs = useNow();
  const uses = useMemo(() => usesOf(rig, nowMs), [rig, nowMs]);
  const timeline = useMemo(() => timelineOf(uses, USE_SPANS[span], nowMs), [uses, span, nowMs]);
  return (
    <section aria-label="Uses">
      <div class="row">
        <h2>Uses</h2>
        {(Object.keys(USE_SPANS) as UseSpan[]).map((each) => (
          <button key={each} type="button" aria-pressed={span === each} onClick={() => setSpan(each)}>
            {each}
          </button>
        ))}
      </div>
      <Drawing timeline={timeline} span={span} />
      {uses.length === 0 ? <p class="muted">The rig has not been used yet.</p> : <Uses uses={uses} />}
    </section>
  );
}

function Drawing({ timeline: { bars, requesters }, span }: { readonly timeline: Timeline; readonly span: UseSpan }) {
  return (
    <figure class="timeline">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${countText(bars.length, 'use')} in the last ${span}. The table has the details.`}
      >
        <rect class="span" width={WIDTH} height={HEIGHT} />
        {bars.map(({ key, from, width, colour, label }) => (
          <rect key={key} class={`series-${colour}`} x={from * WIDTH} width={width * WIDTH} height={HEIGHT}>
            <title>{label}</title>
          </rect>
        ))}
      </svg>
      <p class="ends muted">
        <span>{span} ago</span>
        <span>now</span>
      </p>
      <figcaption class="row">
        {requesters.map(({ name, colour }) => (
          <span key={name}>
            <span class={`series-${colour}`} aria-hidden="true">
              ■
            </span>{' '}
            {name}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function Uses({ uses }: { readonly uses: readonly UseView[] }) {
  return (
    <ShortTable
      label="Last uses"
      caption="Last uses, newest first"
      hasHiddenCaption={true}
      columns={['Claim', 'Requester', 'From', 'To', 'Duration', 'Node', 'State']}
      rows={uses.map(({ key, claim, requester, start, end, duration, node, state }) => ({
        key,
        cells: [
          claim,
          requester,
          timeText(start),
          timeText(end) || '–',
          duration,
          node === '' ? (
            '–'
          ) : (
            <Link key="node" to={pathOf('nodes', node)}>
              {node}
            </Link>
          ),
          state,
        ],
      }))}
    />
  );
}
