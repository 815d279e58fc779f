import { PODS } from '../../data/api/resources.ts';
import { getCommand } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { currentNamespace, NamespaceChoice } from '../../ui/namespaces.tsx';
import { PodTable } from '../../ui/pod-table.tsx';

export default function Pods() {
  const namespace = currentNamespace();
  useCommand(getCommand(PODS, { namespace }));
  return (
    <>
      <h1>Pods</h1>
      <NamespaceChoice />
      <PodTable scope={{ namespace }} />
    </>
  );
}
