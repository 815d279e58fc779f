/** Any object as YAML, with server-side apply. */
import { useEffect, useState } from 'preact/hooks';
import type { KubeObject } from '../../../api/meta/object.ts';
import { objectPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/api/access.ts';
import { kubectl, resourceArgument } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import type { PageProps } from '../../shell/page.ts';
import { navigate } from '../../shell/router.ts';
import { api } from '../../ui/context.ts';
import { currentNamespace } from '../../ui/namespaces.tsx';
import { Action, Missing } from '../../ui/parts.tsx';
import { YamlEditor } from '../../ui/yaml-editor.tsx';
import { typeOf } from './table.tsx';

export default function ObjectPage({ params }: PageProps) {
  const { name = '', plural = '', group = '', version = '' } = params;
  const namespace = currentNamespace();
  const type = { ...typeOf(params), namespaced: namespace !== '' };
  const path = objectPath(type, name, namespace);
  useCommand(
    kubectl('get', resourceArgument(type), name, ...(namespace === '' ? [] : ['-n', namespace]), '-o', 'yaml'),
  );
  const [read, setRead] = useState<{ readonly path: string; readonly text: string; readonly object: KubeObject }>();
  const [error, setError] = useState<Error>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ended = new AbortController();
    setError(undefined);
    Promise.all([api.json<KubeObject>(path, { signal: ended.signal }), import('../../data/manifests/yaml.ts')]).then(
      ([object, { yamlOf }]) => {
        delete object.metadata?.managedFields;
        if (!ended.signal.aborted) setRead({ path, text: yamlOf(object), object });
      },
      (reason: unknown) => {
        if (!ended.signal.aborted) setError(reason instanceof Error ? reason : new Error(String(reason)));
      },
    );
    return () => ended.abort();
  }, [path, round]);
  if (read?.path !== path) return <Missing title={`${plural} ${name}`} object={undefined} error={error} />;
  return (
    <>
      <h1>
        {plural} {namespace === '' ? '' : `${namespace}/`}
        {name}
      </h1>
      <div class="row">
        <button type="button" onClick={() => setRound(round + 1)}>
          Read again
        </button>
        <Action
          label="Delete"
          question={questionOf('delete', type, namespace, { name })}
          confirm={`${plural} ${name} is deleted.`}
          done={`${name} is deleted.`}
          run={async () => {
            await api.json(path, { method: 'DELETE' });
            navigate(`/resources/${group}/${version}/${plural}`);
          }}
        />
      </div>
      {error === undefined ? null : <p class="bad">{error.message}</p>}
      <YamlEditor text={read.text} base={read.object} draftKey={path} onApplied={() => setRound(round + 1)} />
    </>
  );
}
