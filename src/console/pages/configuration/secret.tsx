import { useEffect, useState } from 'preact/hooks';
import type { Secret } from '../../../api/generated/core/v1.ts';
import { objectPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/api/access.ts';
import { decodeSecret, SECRETS } from '../../data/api/resources.ts';
import { describeCommand } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { api } from '../../ui/context.ts';
import { Action, Missing } from '../../ui/parts.tsx';

/** Page of a secret. Each value is hidden until the user shows it. */
export default function SecretPage({ params }: PageProps) {
  const { namespace = '', name = '' } = params;
  useCommand(describeCommand(SECRETS, name, namespace));
  const path = objectPath(SECRETS, name, namespace);
  const [secret, setSecret] = useState<Secret>();
  const [error, setError] = useState<Error>();
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const ended = new AbortController();
    api.json<Secret>(path, { signal: ended.signal }).then(setSecret, (reason: Error) => {
      if (!ended.signal.aborted) setError(reason);
    });
    return () => ended.abort();
  }, [path]);
  if (secret === undefined) return <Missing title={`Secret ${namespace}/${name}`} object={undefined} error={error} />;
  const entries = Object.entries(secret.data ?? {});
  const hide = (key: string): void => setShown(new Set([...shown].filter((each) => each !== key)));
  return (
    <>
      <h1>
        Secret {namespace}/{name}
      </h1>
      <p>Type: {secret.type ?? 'Opaque'}</p>
      {entries.length === 0 ? <p class="muted">The secret has no data.</p> : null}
      <dl>
        {entries.map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>
              {shown.has(key) ? (
                <>
                  <pre class="wrap">{decodeSecret(String(value))}</pre>
                  <button type="button" onClick={() => hide(key)}>
                    Hide {key}
                  </button>
                </>
              ) : (
                <Action
                  label={`Show ${key}`}
                  question={questionOf('get', SECRETS, namespace, { name })}
                  run={() => setShown(new Set([...shown, key]))}
                />
              )}
            </dd>
          </div>
        ))}
      </dl>
    </>
  );
}
