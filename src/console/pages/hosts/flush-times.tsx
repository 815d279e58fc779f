/** Plot of the flush times of the store's members, with the same facts as text. */
import { readFlushTimes } from '../../data/hosts/flush-times.ts';
import { api } from '../../ui/context.ts';
import { Plots } from '../../ui/plots.tsx';

export function FlushTimes({ masters }: { readonly masters: readonly string[] }) {
  return (
    <Plots
      label="Flush times"
      plots={[
        { title: 'Flush of the log of each member', lines: masters.map((node) => ({ metric: node, label: node })) },
      ]}
      of={masters.join()}
      read={(since, signal) => readFlushTimes(api, masters, since, signal)}
    />
  );
}
