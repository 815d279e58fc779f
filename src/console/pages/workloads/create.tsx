/** Creates an application from a form, or any objects from YAML. */
import { type Dispatch, type StateUpdater, useEffect, useState } from 'preact/hooks';
import type { KubeObject } from '../../../api/meta/object.ts';
import { questionOf } from '../../data/api/access.ts';
import { applyManifest } from '../../data/api/apply.ts';
import { kindOf, type ServedKind, servedKinds } from '../../data/api/discovery.ts';
import { DEPLOYMENTS, SERVICES } from '../../data/api/resources.ts';
import { type ApplicationForm, manifestsOf, validateForm } from '../../data/workloads/form.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { navigate } from '../../shell/router.ts';
import { api } from '../../ui/context.ts';
import { useAccess } from '../../ui/hooks.ts';
import { currentNamespace, useNamespaces } from '../../ui/namespaces.tsx';
import { Action, pathOf } from '../../ui/parts.tsx';
import { YamlEditor } from '../../ui/yaml-editor.tsx';

/** Checks all objects by dry run and then applies them in order. Throws the first error with the name of the object. */
async function applyAll(kinds: readonly ServedKind[], manifests: readonly KubeObject[]): Promise<void> {
  for (const manifest of manifests) await applyOne(kinds, manifest, { dryRun: true });
  for (const manifest of manifests) await applyOne(kinds, manifest, { dryRun: false });
}

async function applyOne(
  kinds: readonly ServedKind[],
  manifest: KubeObject,
  { dryRun }: { readonly dryRun: boolean },
): Promise<void> {
  const label = `${manifest.kind} ${manifest.metadata?.name ?? ''}`;
  const type = kindOf(kinds, manifest.apiVersion ?? '', manifest.kind ?? '');
  if (type === undefined)
    throw new Error(`${label}: the server does not serve ${manifest.apiVersion} ${manifest.kind}`);
  const result = await applyManifest(api, type, manifest, { dryRun });
  if (result.outcome !== 'applied') throw new Error(`${label}: ${result.message}`);
}

const EXAMPLE = `apiVersion: v1
kind: ConfigMap
metadata:
  name: example
  namespace: default
data:
  key: value
`;

export default function Create() {
  useCommand('kubectl apply --server-side -f FILE');
  const [isYaml, setYaml] = useState(false);
  const [form, setForm] = useState<ApplicationForm>({
    name: '',
    namespace: currentNamespace() || 'default',
    image: '',
    replicas: 1,
    port: undefined,
    host: '',
  });
  return (
    <>
      <h1>Create</h1>
      <div class="row">
        <button type="button" aria-pressed={!isYaml} onClick={() => setYaml(false)}>
          Form
        </button>
        <button type="button" aria-pressed={isYaml} onClick={() => setYaml(true)}>
          YAML
        </button>
      </div>
      {isYaml ? <YamlEditor text={EXAMPLE} draftKey="create" /> : <Form form={form} setForm={setForm} />}
    </>
  );
}

interface FormProps {
  readonly form: ApplicationForm;
  readonly setForm: Dispatch<StateUpdater<ApplicationForm>>;
}

function Form({ form, setForm }: FormProps) {
  const { names = [], isLimited } = useNamespaces();
  const [first] = names;
  useEffect(() => {
    // The namespace `default` is of no use to users with rights in other namespaces only.
    if (isLimited && first !== undefined)
      setForm((last) => (names.includes(last.namespace) ? last : { ...last, namespace: first }));
  }, [isLimited, first]);
  const [isTried, setTried] = useState(false);
  const errors = isTried ? validateForm(form) : {};
  const create = async (): Promise<void> => {
    setTried(true);
    if (Object.keys(validateForm(form)).length > 0) throw new Error('The form has errors.');
    const kinds = await servedKinds(api);
    const hasRoutes = kindOf(kinds, 'route.openshift.io/v1', 'Route') !== undefined;
    await applyAll(kinds, manifestsOf(form, hasRoutes));
    navigate(pathOf('workloads', 'deployments', form.namespace, form.name));
  };
  const service = useAccess(questionOf('patch', SERVICES, form.namespace));
  const fields: readonly (readonly [keyof ApplicationForm, string, string])[] = [
    ['name', 'Name of the application', 'web'],
    ['namespace', 'Namespace', 'default'],
    ['image', 'Container image', 'registry.example/app:1.0'],
    ['replicas', 'Replicas (pods that run at the same time)', '1'],
    ['port', 'Port on which the application listens (empty: other pods cannot find it by its name)', '8080'],
    ['host', 'Host name for access from outside (empty: none, *: chosen by the cluster)', 'app.example.com'],
  ];
  const set = (field: keyof ApplicationForm, text: string): void => {
    const isNumber = field === 'replicas' || field === 'port';
    const number = text.trim() === '' ? undefined : Number(text);
    const value = isNumber ? number : text.trim();
    setForm({ ...form, [field]: field === 'replicas' ? (value ?? Number.NaN) : value });
  };
  return (
    <form class="form" onSubmit={(event) => event.preventDefault()}>
      <p class="muted">
        The cluster fetches the image and runs it. The next page shows when it is ready, or why it does not start.
      </p>
      {fields.map(([field, label, placeholder]) => (
        <label key={field}>
          {label}
          <input
            type="text"
            name={field}
            placeholder={placeholder}
            list={field === 'namespace' ? 'namespaces' : undefined}
            value={field === 'replicas' && Number.isNaN(form.replicas) ? '' : String(form[field] ?? '')}
            aria-invalid={errors[field] !== undefined}
            onInput={({ currentTarget }) => set(field, currentTarget.value)}
          />
          {errors[field] === undefined ? null : <span class="bad">{errors[field]}</span>}
        </label>
      ))}
      <datalist id="namespaces">
        {names.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <Action
        isDefault
        label="Create"
        question={questionOf('patch', DEPLOYMENTS, form.namespace)}
        {...(form.port === undefined || service.allowed ? {} : { disabled: service.reason })}
        done={`${form.name} is created.`}
        run={create}
      />
    </form>
  );
}
