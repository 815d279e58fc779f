/**
 * Light and dark colours. The preference of the system applies until the user chooses; the choice is kept for the tab.
 */
import { computed, effect, signal } from '@preact/signals';

export type Theme = 'light' | 'dark';

const dark = matchMedia('(prefers-color-scheme: dark)');
const preferred = signal<Theme>(dark.matches ? 'dark' : 'light');
const chosen = signal<Theme | undefined>(undefined);

/** The theme in use. Plots and terminals read their colours again when the theme changes. */
export const theme = computed<Theme>(() => chosen.value ?? preferred.value);

export const switchTheme = (): void => {
  chosen.value = theme.value === 'dark' ? 'light' : 'dark';
};

export function startTheme(): void {
  dark.addEventListener('change', ({ matches }) => {
    preferred.value = matches ? 'dark' : 'light';
  });
  effect(() => {
    document.documentElement.dataset['theme'] = theme.value;
  });
}
