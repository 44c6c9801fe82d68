"""Gradio's theme: its variables point at ours (assets/css/kv-1-tokens.css), so that there is one palette for all."""

import gradio as gr

_SANS = [
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Roboto",
    "PingFang SC",
    "Microsoft YaHei",
    "Noto Sans CJK SC",
    "sans-serif",
]
_MONO = ["ui-monospace", "SF Mono", "Menlo", "Consolas", "Noto Sans Mono CJK SC", "monospace"]

_VARIABLES = {
    "body_background_fill": "var(--paper)",
    "body_text_color": "var(--ink)",
    "body_text_color_subdued": "var(--muted)",
    "background_fill_primary": "var(--card)",
    "background_fill_secondary": "var(--soft)",
    "border_color_primary": "var(--rule)",
    "border_color_accent": "var(--accent)",
    "color_accent_soft": "var(--soft)",
    "link_text_color": "var(--accent)",
    "link_text_color_hover": "var(--accent)",
    "link_text_color_visited": "var(--accent)",
    "link_text_color_active": "var(--accent)",
    "block_background_fill": "transparent",
    "block_label_background_fill": "transparent",
    "block_label_text_color": "var(--muted)",
    "block_info_text_color": "var(--muted)",
    "block_title_text_color": "var(--ink)",
    "block_border_color": "var(--rule)",
    "input_background_fill": "var(--card)",
    "input_border_color": "var(--edge)",
    "input_border_color_focus": "var(--accent)",
    "input_placeholder_color": "var(--muted)",
    "button_primary_background_fill": "var(--accent)",
    "button_primary_background_fill_hover": "var(--accent-strong)",
    "button_primary_text_color": "var(--paper)",
    "button_primary_border_color": "var(--accent)",
    "button_secondary_background_fill": "transparent",
    "button_secondary_background_fill_hover": "var(--soft)",
    "button_secondary_text_color": "var(--accent)",
    "button_secondary_border_color": "var(--accent)",
    "slider_color": "var(--accent)",
    "table_border_color": "var(--rule)",
    "table_even_background_fill": "transparent",
    "table_odd_background_fill": "transparent",
    "table_text_color": "var(--ink)",
    "code_background_fill": "var(--soft)",
}


def theme() -> gr.themes.Base:
    """The theme; light and dark are one set of names, our style sheet gives them both values."""
    base = gr.themes.Base(font=_SANS, font_mono=_MONO, radius_size="sm", text_size="lg")
    same = {f"{name}_dark": value for name, value in _VARIABLES.items()}
    return base.set(
        **_VARIABLES,
        **{name: value for name, value in same.items() if hasattr(base, name)},
        block_border_width="0px",
        block_border_width_dark="0px",
        block_shadow="none",
        block_padding="0",
        layout_gap="0",
        button_primary_shadow="none",
        input_shadow="none",
        input_shadow_focus="none",
    )
