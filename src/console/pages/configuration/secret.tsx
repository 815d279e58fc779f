import { useState } from 'preact/hooks';
import type { Secret } from '../../../api/generated/core/v1.ts';
import { objectPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/api/access.ts';
import { decodeSecret, SECRETS } from '../../data/api/resources.ts';
import { describeCommand } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { api } from '../../ui/context.ts';
import { usePoll } from '../../ui/hooks.ts';
import { Action, Missing } from '../../ui/parts.tsx';

const ONCE_MS = 86_400_000;

/** Page of a secret. Each value is hidden until the user shows it. */
export default function SecretPage({ params }: PageProps) {
  const { namespace = '', name = '' } = params;
  useCommand(describeCommand(SECRETS, name, namespace));
  const path = objectPath(SECRETS, name, namespace);
  const secret = usePoll((signal) => api.json<Secret>(path, { signal }), ONCE_MS, path);
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set());
  if (secret === undefined)
    return <Missing title={`Secret ${namespace}/${name}`} object={undefined} error={undefined} />;
  return (
    <>
      <h1>
        Secret {namespace}/{name}
      </h1>
      <p>{secret.type}</p>
      <dl>
        {Object.entries(secret.data ?? {}).map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>
              {shown.has(key) ? (
                <pre class="wrap">{decodeSecret(String(value))}</pre>
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
