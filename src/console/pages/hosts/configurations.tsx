/** Differences of two machine configurations, such as those of a pool before and after a change. */
import { useEffect, useState } from 'preact/hooks';
import { MACHINE_CONFIGS } from '../../data/api/resources.ts';
import { getCommand } from '../../data/kubectl.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { showFailure } from '../../shell/toasts.tsx';
import { useFeed } from '../../ui/hooks.ts';
import { DiffOf, type DiffSide } from './diff.tsx';

export default function Configurations() {
  useCommand(getCommand(MACHINE_CONFIGS));
  const { items, error, state } = useFeed(MACHINE_CONFIGS);
  const [sides, setSides] = useState<readonly DiffSide[]>([]);
  useEffect(() => {
    let isShown = true;
    void import('../../data/manifests/yaml.ts').then(({ yamlOf }) => {
      if (!isShown) return;
      const sorted = items.toSorted((a, b) =>
        (b.metadata?.creationTimestamp ?? '').localeCompare(a.metadata?.creationTimestamp ?? ''),
      );
      setSides(sorted.map((each) => ({ name: each.metadata?.name ?? '', text: yamlOf(each['spec'] ?? {}) })));
    }, showFailure);
    return () => {
      isShown = false;
    };
  }, [items]);
  if (error !== undefined && items.length === 0) return <p class="bad">{error.message}</p>;
  if (sides.length === 0)
    return <p>{state === 'loading' || items.length > 0 ? 'The configurations are being read.' : 'There are none.'}</p>;
  return <DiffOf sides={sides} same="The configurations are the same." />;
}
