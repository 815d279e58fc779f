/** Overview for users who may not read the nodes: their namespaces with the problems of the pods. */
import { countText } from '../../../base/text/count-text.ts';
import { PODS } from '../../data/api/resources.ts';
import { podProblems } from '../../data/health.ts';
import { sanitizeLines } from '../../data/plain-text.ts';
import { useFeed } from '../../ui/hooks.ts';
import { useNamespaces } from '../../ui/namespaces.tsx';
import { Link, State } from '../../ui/parts.tsx';

/** Maximum number of namespaces whose pods are watched. */
const MAX_NAMESPACES = 12;

export function OwnNamespaces() {
  const { names } = useNamespaces();
  const shown = names?.slice(0, MAX_NAMESPACES) ?? [];
  return (
    <section aria-label="Your namespaces">
      <h2>Your namespaces</h2>
      {names?.length === 0 ? (
        <p>You may not read any namespace. Ask an administrator for a role, such as view, in a namespace.</p>
      ) : null}
      <div class="cards">
        {shown.map((name) => (
          <OwnNamespace key={name} name={name} />
        ))}
      </div>
      {names !== undefined && names.length > shown.length ? (
        <p class="muted">
          {shown.length} of {names.length} namespaces are shown.
        </p>
      ) : null}
    </section>
  );
}

function OwnNamespace({ name }: { readonly name: string }) {
  const { items, version, error } = useFeed(PODS, { namespace: name });
  const problems = podProblems(items, []);
  return (
    <section class="card" aria-label={name}>
      <h3>
        <Link to={`/workloads?ns=${encodeURIComponent(name)}`}>{name}</Link>
      </h3>
      {version === 0 ? (
        <p class="muted">{error === undefined ? 'The pods are being read.' : error.message}</p>
      ) : (
        <p>
          <State
            level={problems.length === 0 ? 'good' : 'warn'}
            text={
              problems.length === 0
                ? `${countText(items.length, 'pod')} without problems`
                : `${problems.length} of ${countText(items.length, 'pod')} with problems`
            }
          />
        </p>
      )}
      <ul>
        {problems.map(({ title, detail, link }) => (
          <li key={title}>
            <Link to={link}>{sanitizeLines(title)}</Link> {sanitizeLines(detail)}
          </li>
        ))}
      </ul>
    </section>
  );
}
